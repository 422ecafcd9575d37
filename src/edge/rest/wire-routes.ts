/** Routes of RPCs whose request and response bodies are in a wire style: bytes in, bytes out. */
import { create, type DescMethod, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance } from "fastify";
import type { ExchangeHead } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { wireStyle } from "../../dialect/index.ts";
import type { RouteContext } from "./options.ts";
import { readWireRequest } from "./request-parts.ts";
import { rpcCaller } from "./rpc-input.ts";
import { abortWith, stopAll } from "./rest-call.ts";
import { constraintsOf } from "./when-header.ts";

/** The response of such RPCs. */
type WireResponse = Message & { readonly head?: ExchangeHead; readonly body: Uint8Array };

/** Whether a method is such an RPC. */
export function isWireMethod({ methodKind, input, output }: DescMethod): boolean {
  return methodKind === "unary" && "body" in input.field && "body" in output.field;
}

/** Registers such a route. */
export function registerWire(scope: FastifyInstance, context: RouteContext): void {
  const { route, transport, dialect, onRequest } = context;
  const method = route.method as DescMethodUnary;
  const text = wireStyle(dialect);
  if (text === undefined) throw new Error(`${route.url}: its dialect has no bodies of its own`);
  const running = stopAll(context.stopping);
  // Methods without side effects leave no record.
  const isRecorded = method.idempotency !== Idempotency.NO_SIDE_EFFECTS;
  scope.route({
    method: route.route.method,
    url: route.url,
    constraints: constraintsOf(route),
    onRequest,
    async handler(request, reply) {
      const { values, header } = rpcCaller(request);
      const { signal } = abortWith(reply.raw, running);
      const forwarded = text.forwardedHeaders;
      const fields = readWireRequest(request.raw, request.body, { route, forwarded });
      const input = create(method.input, fields);
      request.isRecorded = isRecorded;
      const answer = await transport.unary(method, signal, undefined, header, input, values);
      const { head, body } = answer.message as WireResponse;
      if (head === undefined) throw new Error("no head came");
      return reply.code(head.status).headers(head.headers).send(body);
    },
  });
}
