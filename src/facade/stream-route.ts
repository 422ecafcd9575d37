/** Routes to RPCs that stream bytes without taking any: fields from path and query, the reply as it comes. */
import type { DescMethodServerStreaming } from "@bufbuild/protobuf";
import type { FastifyInstance } from "fastify";
import { textDialects } from "../dialect/index.ts";
import { abortWith, stopAll } from "./abort.ts";
import { openParts, passParts } from "./exchange-route.ts";
import type { RouteContext } from "./route-context.ts";
import { rpcCaller } from "./rpc-caller.ts";
import { readInput } from "./rpc-input.ts";
import { pathFields, queryFields } from "./unary-route.ts";
import { constraintsOf } from "./when-header.ts";

/** Registers one. */
export function registerStream(scope: FastifyInstance, context: RouteContext): void {
  const { route, transport, dialect, onRequest } = context;
  const method = route.method as DescMethodServerStreaming;
  const text = textDialects.get(dialect);
  if (text === undefined) throw new Error(`${route.url}: its dialect has no streams`);
  const running = stopAll(context.stopping);
  const readFields = queryFields(context);
  scope.route({
    method: route.route.method,
    url: route.url,
    constraints: constraintsOf(route),
    onRequest,
    async handler(request, reply) {
      const fields = { ...readFields(request, reply), ...pathFields(route, request) };
      const message = readInput(method, fields);
      const { signal } = abortWith(reply.raw, running);
      const caller = rpcCaller(request);
      const parts = await openParts({ transport, method, message, caller, signal });
      await passParts(reply, { parts, keepAlive: text.keepAlive });
      return reply;
    },
  });
}
