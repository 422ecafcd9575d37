/** Routes that carry a text generation: bytes in, bytes out. */
import { create, type DescMethodServerStreaming, type Message } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply } from "fastify";
import {
  type ExchangeHead,
  ExchangeRequestSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { textDialects } from "../dialect/index.ts";
import { abortWith, stopAll } from "./abort.ts";
import type { RouteContext } from "./route-context.ts";
import { type RpcCaller, rpcCaller } from "./rpc-caller.ts";
import { forwardedHeaders } from "./rpc-headers.ts";
import { StreamWriter } from "./stream-writer.ts";
import { constraintsOf } from "./when-header.ts";
import { readWireRequest } from "./wire-request.ts";

/** Registers one. */
export function registerExchange(scope: FastifyInstance, context: RouteContext): void {
  const { route, transport, dialect, onRequest } = context;
  const method = route.method as DescMethodServerStreaming;
  const text = textDialects.get(dialect);
  if (text === undefined) throw new Error(`${route.url}: its dialect carries no text generation`);
  const running = stopAll(context.stopping);
  scope.route({
    method: route.route.method,
    url: route.url,
    constraints: constraintsOf(route),
    onRequest,
    async handler(request, reply) {
      const { values, header } = rpcCaller(request);
      const caller = { values, header: { ...header, ...forwardedHeaders(request) } };
      const abort = abortWith(reply.raw, running);
      const message = create(ExchangeRequestSchema, {
        ...readWireRequest(request, context, text.forwardedHeaders),
        strict: request.headers["x-uas-strict"] === "true",
      });
      request.isRecorded = true;
      const parts = await openParts({ transport, method, message, caller, signal: abort.signal });
      await passParts(reply, { parts, keepAlive: text.keepAlive });
      return reply;
    },
  });
}

/** What to open. */
export interface OpenOptions {
  readonly transport: Transport;
  readonly method: DescMethodServerStreaming;
  readonly message: Message;
  readonly caller: RpcCaller;
  readonly signal: AbortSignal;
}

/** Calls an RPC that streams a reply in parts: its head first, then chunks. */
export async function openParts(options: OpenOptions): Promise<AsyncIterator<ReplyPart>> {
  const { transport, method, message, caller, signal } = options;
  const { values, header } = caller;
  const input = single(message);
  const response = await transport.stream(method, signal, undefined, header, input, values);
  return (response.message as AsyncIterable<Message & ReplyPart>)[Symbol.asyncIterator]();
}

async function* single<T>(value: T): AsyncIterable<T> {
  yield value;
}

/** Passes a reply on. Until its head every failure is answered like any other; from there on the stream is ours. */
export async function passParts(reply: FastifyReply, options: PassOptions): Promise<void> {
  const first = await options.parts.next();
  if (first.done || first.value.part.case !== "head") throw new Error("no head came first");
  await pass(reply, first.value.part.value, options);
}

/** What {@link pass} needs beside the head. */
export interface PassOptions {
  readonly parts: AsyncIterator<ReplyPart>;
  /** What to send into silence; `undefined`: nothing. */
  readonly keepAlive: Buffer | undefined;
}

/** A part of a reply: the head first, then chunks. */
export interface ReplyPart {
  readonly part:
    | { readonly case: "head"; readonly value: ExchangeHead }
    | { readonly case: "chunk"; readonly value: Uint8Array }
    | { readonly case: undefined };
}

/** Passes the reply on; the call is settled when `parts` has ended. */
export async function pass(
  reply: FastifyReply,
  head: ExchangeHead,
  options: PassOptions,
): Promise<void> {
  const { parts } = options;
  const { raw } = reply;
  reply.hijack();
  try {
    await write(reply, head, options);
  } catch {
    // The service could not even say in its dialect that it failed: a clean end would be a lie.
    raw.destroy();
  } finally {
    await parts.return?.();
  }
}

async function write(
  reply: FastifyReply,
  { status, headers }: ExchangeHead,
  { parts, keepAlive }: PassOptions,
): Promise<void> {
  const { raw } = reply;
  const isWhole = "content-length" in headers;
  // Headers that the hooks have set: Fastify sends them itself only for replies of its own.
  const ours = reply.getHeaders() as Record<string, string>;
  raw.writeHead(status, { ...headers, ...ours });
  if (!isWhole) raw.flushHeaders();
  const writer = new StreamWriter(raw, isWhole ? undefined : keepAlive);
  try {
    for (;;) {
      const { done, value } = await parts.next();
      if (done) break;
      if (value.part.case !== "chunk") continue;
      const taken = writer.write(value.part.value);
      if (taken !== undefined) await taken;
    }
    writer.end();
  } finally {
    writer.close();
  }
}
