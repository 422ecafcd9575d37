/** NativeService: vendors' own interfaces, by one handler and a table for each vendor. */
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
import { callerKey, requestIdKey } from "../core/caller.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import { checkRequest } from "../inference/headers.ts";
import { keyCallerOf, requireActive } from "../inference/pipeline/admit.ts";
import type { CallContext } from "../inference/pipeline/context.ts";
import { asMessages, type Messages, type Pushed } from "../core/sink.ts";
import { NativeAdapter } from "./adapter.ts";
import { NativeBody } from "./body.ts";
import { passHeaders, type NativeAsk, type NativeContext, type NativeSink } from "./context.ts";
import { cancel, list, poll } from "./jobs.ts";
import { asked, pass, relay } from "./pass.ts";
import { checkPath, noSuchAddress, readQuery } from "./path.ts";
import { submit } from "./submit.ts";

/** The handlers of NativeService: they push replies into a sink, whichever edge calls them. */
export interface NativeHandlers {
  /** @throws GatewayError where the sink was not told of the failure */
  exchange(request: ExchangeRequest, context: CallContext, sink: NativeSink): Promise<Pushed>;
  /** What a link leads to, for whoever has it. @throws GatewayError */
  followLink(request: FollowLinkRequest, signal: CancelSignal, sink: NativeSink): Promise<Pushed>;
}

/** Creates them. */
export function createNativeHandlers(context: NativeContext): NativeHandlers {
  return {
    async exchange(request, { caller, requestId, signal }, sink) {
      return run(find(request, context, { caller, requestId, signal, sink }), context);
    },
    async followLink(request, signal, sink) {
      await follow(request, context, { signal, sink });
      return {};
    },
  };
}

/** The handlers over the network: their replies as messages of RPCs. */
export function createNativeService(handlers: NativeHandlers): ServiceImpl<typeof NativeService> {
  return {
    exchange(request, { values, signal: client }) {
      const caller = keyCallerOf(values.get(callerKey));
      const requestId = values.get(requestIdKey);
      return asMessages(
        (sink, signal) => handlers.exchange(request, { caller, requestId, signal }, sink),
        messagesOf(ExchangeResponseSchema),
        client,
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
    // As `create` would make it, without going through the schema for each chunk.
    ({ $typeName: schema.typeName, part }) as MessageShape<Schema>;
  return {
    head: ({ status, headers }) =>
      message({ case: "head", value: create(ExchangeHeadSchema, { status, headers }) }),
    of: (value) => (value.length === 0 ? [] : [message({ case: "chunk", value })]),
  };
}

async function run(ask: NativeAsk, context: NativeContext): Promise<Pushed> {
  const { route } = ask;
  if (route.kind === "call") {
    const { caller, requestId, signal, sink } = ask;
    const adapter = new NativeAdapter({ ...ask, route }, context);
    return context.handlers.through(adapter, { caller, requestId, signal }, sink);
  }
  requireActive(ask.caller);
  await counted(context, () => answer(ask, context));
  return {};
}

/** What costs nothing by itself. */
function answer(ask: NativeAsk, context: NativeContext): Promise<void> {
  const { route } = ask;
  switch (route.kind) {
    case "submit":
      return submit({ ...ask, route }, context);
    case "poll":
      return poll({ ...ask, route }, context);
    case "cancel":
      return cancel({ ...ask, route }, context);
    case "list":
      return list({ ...ask, route }, context);
    case "pass":
      return pass({ ...ask, route }, context);
    case "call":
      break;
  }
  throw new TypeError("a call runs by itself");
}

interface Following {
  readonly signal: CancelSignal;
  readonly sink: NativeSink;
}

async function follow(
  { prefix, token, headers }: FollowLinkRequest,
  context: NativeContext,
  { signal, sink }: Following,
): Promise<void> {
  const at = context.vendors.get(prefix);
  const link = at && context.links.open(at, token);
  if (at === undefined || link === undefined) throw noSuchAddress("GET", `${prefix}/_s/…`);
  const { base, target, accountId } = link;
  checkRequest({ query: "", headers, body: new Uint8Array() });
  const passed = passHeaders(headers, at.requestHeaders);
  const ask = { at, caller: { accountId } };
  const reply = await asked(
    at.transport.send({ base, method: "GET", target, headers: passed, body: [], signal }),
  );
  try {
    await counted(context, () => relay(ask, context, { reply, sink, onWhole: undefined }));
  } finally {
    reply.body.cancel();
  }
}

/** A stopping gateway lets it finish. */
async function counted({ calls }: NativeContext, work: () => Promise<void>): Promise<void> {
  calls.enter();
  try {
    await work();
  } finally {
    calls.leave();
  }
}

/** Finds the route. @throws GatewayError NOT_FOUND for everything that is not declared */
function find(
  message: ExchangeRequest,
  { vendors }: NativeContext,
  from: Pick<NativeAsk, "caller" | "requestId" | "signal" | "sink">,
): NativeAsk {
  const { prefix, method, path, query, headers, body } = message;
  const at = vendors.get(prefix);
  // An account that may not call learns that first, whatever it asks for.
  if (at === undefined) {
    requireActive(from.caller);
    throw noSuchAddress(method, `${prefix}${path}`);
  }
  checkRequest(message);
  checkPath(method, path);
  const params = readQuery(query);
  for (const route of at.api.routes) {
    const groups = route.method === method ? route.path.exec(path) : null;
    if (groups === null) continue;
    const request = new NativeBody({ groups: { ...groups.groups }, query: params, headers, body });
    if (route.when?.(request) === false) continue;
    return { at, route, request, method: route.method, path, query, ...from };
  }
  requireActive(from.caller);
  throw noSuchAddress(method, `${prefix}${path}`);
}
