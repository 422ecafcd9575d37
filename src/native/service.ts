/**
 * The handlers of NativeService: vendors' native APIs, by one handler and a route table for each
 * vendor.
 */
import { create, type MessageShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { ExchangeHeadSchema } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  ExchangeResponseSchema,
  type FollowLinkRequest,
  FollowLinkResponseSchema,
  type NativeService,
} from "../../gen/uas/native/v1/native_service_pb.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import { checkRequest } from "../calls/adapters/headers.ts";
import type { CallContext } from "../calls/pipeline/context.ts";
import { contextOf } from "../calls/service.ts";
import { asMessages, type Messages, type SentReply } from "../core/sink.ts";
import { HttpFailure } from "../http/failure.ts";
import { failureError } from "../routing/upstream-refusal.ts";
import { NativeAdapter } from "./adapter.ts";
import { NativeBody } from "./body.ts";
import { changeCache, listCaches } from "./caches.ts";
import { passHeaders, type NativeContext } from "./context.ts";
import type { NativeExchange, NativeSink } from "./mount.ts";
import { cancel, list, listModels, poll } from "./job-requests.ts";
import { pass, relay } from "./pass.ts";
import { checkPath, noSuchAddress, readQuery } from "./path.ts";
import { submit } from "./submit.ts";

/** The handlers of NativeService: they push replies into a sink, for every edge. */
export interface NativeHandlers {
  /**
   * Answers a native request.
   *
   * @throws GatewayError if no head was sent yet
   */
  exchange(request: ExchangeRequest, context: CallContext, sink: NativeSink): Promise<SentReply>;
  /** Answers with the target of a link: no key is needed. @throws GatewayError NOT_FOUND */
  followLink(
    request: FollowLinkRequest,
    signal: CancelSignal,
    sink: NativeSink,
  ): Promise<SentReply>;
}

/** Creates the native handlers. */
export function createNativeHandlers(context: NativeContext): NativeHandlers {
  return {
    async exchange(request, from, sink) {
      return dispatch(find(request, context, { ...from, sink }), context);
    },
    async followLink(request, signal, sink) {
      await mapHttpFailure(follow(request, context, { signal, sink }));
      return {};
    },
  };
}

/** The handlers as RPCs: replies become messages. */
export function createNativeService(handlers: NativeHandlers): ServiceImpl<typeof NativeService> {
  return {
    exchange(request, rpc) {
      const from = contextOf(rpc);
      return asMessages(
        (sink, signal) => handlers.exchange(request, { ...from, signal }, sink),
        messagesOf(ExchangeResponseSchema),
        rpc.signal,
      );
    },

    followLink: (request, { signal: client }) =>
      asMessages(
        (sink, signal) => handlers.followLink(request, signal, sink),
        messagesOf(FollowLinkResponseSchema),
        client,
      ),
  };
}

/** The messages of both RPCs, which differ in their names only. */
function messagesOf<Schema extends typeof ExchangeResponseSchema | typeof FollowLinkResponseSchema>(
  schema: Schema,
): Messages<Buffer, MessageShape<Schema>> {
  const message = (part: ExchangeResponse["part"]) =>
    // As `create` would make it, without reading the schema for each chunk.
    ({ $typeName: schema.typeName, part }) as MessageShape<Schema>;
  return {
    head: ({ status, headers }) =>
      message({ case: "head", value: create(ExchangeHeadSchema, { status, headers }) }),
    of: (value) => (value.length === 0 ? [] : [message({ case: "chunk", value })]),
  };
}

async function dispatch(exchange: NativeExchange, context: NativeContext): Promise<SentReply> {
  const { route } = exchange;
  if (route.kind === "call") {
    const { caller, requestId, idempotencyKey, traceparent, signal, sink } = exchange;
    const adapter = new NativeAdapter({ ...exchange, route }, context);
    const from = { caller, requestId, idempotencyKey, traceparent, signal };
    return context.handlers.runAdapter(adapter, from, sink);
  }
  if (route.kind === "cache") return changeCache({ ...exchange, route }, context);
  context.admission.account(exchange.caller);
  const work = (): Promise<void> => mapHttpFailure(answerFree(exchange, context));
  // A job must be paid for, though its submission itself is free.
  if (route.kind === "submit") await counted(context, work);
  else await context.calls.runFree(exchange.caller.accountId, work);
  return {};
}

/** Answers a request that costs nothing by itself. */
function answerFree(exchange: NativeExchange, context: NativeContext): Promise<void> {
  const { route } = exchange;
  switch (route.kind) {
    case "submit":
      return submit({ ...exchange, route }, context);
    case "poll":
      return poll({ ...exchange, route }, context);
    case "cancel":
      return cancel({ ...exchange, route }, context);
    case "list":
      return list({ ...exchange, route }, context);
    case "models":
      return listModels({ ...exchange, route }, context);
    case "pass":
      return pass({ ...exchange, route }, context);
    case "cacheList":
      return listCaches({ ...exchange, route }, context);
    case "call":
    case "cache":
      break;
  }
  throw new TypeError("a call runs by itself");
}

interface LinkReply {
  readonly signal: CancelSignal;
  readonly sink: NativeSink;
}

async function follow(
  { prefix, token, headers }: FollowLinkRequest,
  context: NativeContext,
  { signal, sink }: LinkReply,
): Promise<void> {
  const mount = context.vendors.get(prefix);
  const link = mount && context.links.open(mount, token);
  if (mount === undefined || link === undefined) throw noSuchAddress("GET", `${prefix}/_s/…`);
  const { base, target, owner } = link;
  if (!(await context.isKeyUsable(owner))) throw noSuchAddress("GET", `${prefix}/_s/…`);
  checkRequest({ query: "", headers, body: new Uint8Array() });
  const passed = passHeaders(headers, mount.requestHeaders);
  const exchange = { mount, caller: owner };
  const sent = { base, target, headers: passed, body: [], signal };
  const reply = await mount.transport.send({ ...sent, method: "GET" });
  try {
    await context.calls.runFree(owner.accountId, () =>
      relay(exchange, context, { reply, sink, onWhole: undefined }),
    );
  } finally {
    reply.body.cancel();
  }
}

/**
 * Maps a failure of the vendor's connection to the caller's error. @throws GatewayError; other
 * errors unchanged
 */
async function mapHttpFailure(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    throw error instanceof HttpFailure ? failureError(error.kind, error) : error;
  }
}

/** Counts the request as running: a stopping gateway lets it finish. */
async function counted({ admission }: NativeContext, work: () => Promise<void>): Promise<void> {
  admission.enter();
  try {
    await work();
  } finally {
    admission.leave();
  }
}

/** Finds the route of a request. @throws GatewayError NOT_FOUND for undeclared addresses */
function find(
  message: ExchangeRequest,
  { vendors, admission }: NativeContext,
  from: CallContext & Pick<NativeExchange, "sink">,
): NativeExchange {
  const { prefix, method, path, query, headers, body } = message;
  const mount = vendors.get(prefix);
  // A suspended account gets its own error first, for every request.
  if (mount === undefined) {
    admission.account(from.caller);
    throw noSuchAddress(method, `${prefix}${path}`);
  }
  checkRequest(message);
  checkPath(method, path);
  const params = readQuery(query);
  for (const route of mount.api.routes) {
    const groups = route.method === method ? route.path.exec(path) : null;
    if (groups === null) continue;
    const request = new NativeBody({ groups: { ...groups.groups }, query: params, headers, body });
    if (route.when?.(request) === false) continue;
    return { mount, route, request, method: route.method, path, query, ...from };
  }
  admission.account(from.caller);
  throw noSuchAddress(method, `${prefix}${path}`);
}
