/**
 * Routes of RPCs that stream bytes and take no body: fields come from path and query, the reply is
 * forwarded.
 */
import type { DescMethodServerStreaming, Message } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { ExchangeHead } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { textDialects } from "../../dialect/index.ts";
import { fieldHeaders } from "./deprecation.ts";
import type { RouteContext } from "./options.ts";
import { readInput, rpcCaller } from "./rpc-input.ts";
import { abortWith, stopAll, StreamWriter } from "./rest-call.ts";
import { pathFieldsOf, queryFields } from "./unary-route.ts";
import { constraintsOf } from "./when-header.ts";

/** Registers such a route. */
export function registerStream(scope: FastifyInstance, context: RouteContext): void {
  const { route, transport, dialect, onRequest } = context;
  const method = route.method as DescMethodServerStreaming;
  const text = textDialects.get(dialect);
  if (text === undefined) throw new Error(`${route.url}: its dialect has no streams`);
  const running = stopAll(context.stopping);
  const readFields = queryFields(context);
  const findHeaders = fieldHeaders(method.input);
  scope.route({
    method: route.route.method,
    url: route.url,
    constraints: constraintsOf(route),
    onRequest,
    async handler(request, reply) {
      const fields = { ...readFields(request, reply), ...pathFieldsOf(route, request) };
      reply.headers(findHeaders?.(fields) ?? {});
      const message = readInput(method, fields);
      const { signal } = abortWith(reply.raw, running);
      const { values, header } = rpcCaller(request);
      const input = single(message);
      const response = await transport.stream(method, signal, undefined, header, input, values);
      const messages = response.message as AsyncIterable<Message & ReplyPart>;
      await pass(reply, messages[Symbol.asyncIterator](), text.keepAlive);
      return reply;
    },
  });
}

async function* single<T>(value: T): AsyncIterable<T> {
  yield value;
}

/** A part of a reply: first the head, then chunks. */
interface ReplyPart {
  readonly part:
    | { readonly case: "head"; readonly value: ExchangeHead }
    | { readonly case: "chunk"; readonly value: Uint8Array }
    | { readonly case: undefined };
}

/**
 * Forwards a reply. A failure before its head becomes an ordinary error reply; afterwards the route
 * controls the stream.
 */
async function pass(
  reply: FastifyReply,
  parts: AsyncIterator<ReplyPart>,
  keepAlive: Buffer,
): Promise<void> {
  const first = await parts.next();
  if (first.done || first.value.part.case !== "head") throw new Error("no head came first");
  const { status, headers } = first.value.part.value;
  const { raw } = reply;
  reply.hijack();
  // Headers set by hooks: Fastify itself sends them only with its replies.
  const ours = reply.getHeaders() as Record<string, string>;
  raw.writeHead(status, { ...headers, ...ours });
  raw.flushHeaders();
  const writer = new StreamWriter(raw, keepAlive);
  try {
    for (;;) {
      const { done, value } = await parts.next();
      if (done) break;
      if (value.part.case === "chunk") await writer.write(value.part.value);
    }
    writer.end();
  } catch {
    // The service could not report the failure in its dialect, and a clean end would look like
    // success.
    raw.destroy();
  } finally {
    writer.close();
    await parts.return?.();
  }
}
