/** Routes to RPCs with one answer: fields from path, query and body, the answer in the dialect's form. */
import { asBuffer } from "../bytes.ts";
import type { DescMethodUnary, JsonObject } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { dialects } from "../dialect/index.ts";
import { abortWith, stopAll } from "./abort.ts";
import { noSuchPath } from "./errors.ts";
import { readJsonBody } from "./json-body.ts";
import { takeRequestId } from "./request-context.ts";
import type { RouteContext } from "./route-context.ts";
import type { RestRoute } from "./route-table.ts";
import { rpcCaller } from "./rpc-caller.ts";
import { readInput } from "./rpc-input.ts";
import { forwardedHeaders, passHeaders } from "./rpc-headers.ts";
import { constraintsOf } from "./when-header.ts";

/** Registers one. */
export function registerUnary(scope: FastifyInstance, context: RouteContext): void {
  const { route, transport, dialect, onRequest } = context;
  const method = route.method as DescMethodUnary;
  const { replyBody } = dialects[dialect];
  const running = stopAll(context.stopping);
  const readFields = route.route.method === "POST" ? bodyFields(context) : queryFields(context);
  scope.route({
    method: route.route.method,
    url: route.url,
    constraints: constraintsOf(route),
    onRequest,
    async handler(request, reply) {
      const fields = { ...readFields(request, reply), ...pathFields(route, request) };
      const { values, header } = rpcCaller(request);
      const input = readInput(method, fields);
      const { signal } = abortWith(reply.raw, running);
      const headers = { ...header, ...forwardedHeaders(request) };
      const answer = await transport.unary(method, signal, undefined, headers, input, values);
      if (passHeaders(answer.header, request, reply)) return reply.code(304).send();
      const body = replyBody(method.output, answer.message);
      return reply
        .type("application/json; charset=utf-8")
        .send(body instanceof Uint8Array ? asBuffer(body) : JSON.stringify(body));
    },
  });
}

type ReadFields = (request: FastifyRequest, reply: FastifyReply) => JsonObject;

/** The fields of a body. What is in the query is not for the RPC: a key may stand there. */
function bodyFields({ route, dialect }: RouteContext): ReadFields {
  const { input } = route.method;
  const pathNames = [...route.route.path.matchAll(/\{(\w+)/g)].map(([, name = ""]) => name);
  const options = { input, pathFields: new Set(pathNames) };
  const names = dialects[dialect].requestIdHeaders;
  return (request, reply) => {
    const body = readJsonBody(request, options);
    takeRequestId(body, { request, reply, names });
    return body;
  };
}

/** The fields of a query. */
export function queryFields({ dialect }: RouteContext): ReadFields {
  const { queryFields: read = (query: JsonObject) => query } = dialects[dialect];
  return ({ query }) => read(query as JsonObject);
}

/** The fields of a path. */
export function pathFields(
  { restField, restSuffix }: RestRoute,
  request: FastifyRequest,
): JsonObject {
  const { "*": rest = "", ...fields } = request.params as Record<string, string>;
  if (restField === undefined) return fields;
  if (!rest.endsWith(restSuffix)) throw noSuchPath(request.method, request.url);
  return { ...fields, [restField]: rest.slice(0, rest.length - restSuffix.length) };
}
