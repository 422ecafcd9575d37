/** Routes to RPCs with one answer: fields from path and query, the answer in the dialect's form. */
import { fromJson, type DescMethodUnary, type JsonObject } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import { dialects } from "../dialect/index.ts";
import { asBuffer } from "../dialect/json-scan.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import type { RouteContext } from "./route-context.ts";
import { rpcCaller } from "./rpc-caller.ts";
import { constraintsOf } from "./when-header.ts";

/** Registers one. */
export function registerUnary(scope: FastifyInstance, context: RouteContext): void {
  const { route, transport, dialect, onRequest } = context;
  const method = route.method as DescMethodUnary;
  const { queryFields = (query) => query, replyBody } = dialects[dialect];
  scope.route({
    method: route.route.method,
    url: route.url,
    constraints: constraintsOf(route),
    onRequest,
    async handler(request, reply) {
      const { values, header } = rpcCaller(request);
      const input = readInput(method, {
        ...queryFields(request.query as JsonObject),
        ...pathFields(route.restField, request.params as Record<string, string>),
      });
      const answer = await transport.unary(method, undefined, undefined, header, input, values);
      const body = replyBody(method.output, answer.message);
      return reply
        .type("application/json; charset=utf-8")
        .send(body instanceof Uint8Array ? asBuffer(body) : JSON.stringify(body));
    },
  });
}

function pathFields(restField: string | undefined, params: Record<string, string>): JsonObject {
  const { "*": rest, ...fields } = params;
  return restField === undefined ? fields : { ...fields, [restField]: rest ?? "" };
}

function readInput(method: DescMethodUnary, fields: JsonObject) {
  try {
    return fromJson(method.input, fields, { ignoreUnknownFields: true });
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : "";
    throw new GatewayError(ErrorCode.INVALID_REQUEST, `A parameter is not valid: ${text}`, {
      cause,
    });
  }
}
