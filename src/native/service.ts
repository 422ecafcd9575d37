/** NativeService: vendors' own interfaces, by one handler and a table for each vendor. */
import type { ServiceImpl } from "@connectrpc/connect";
import { create } from "@bufbuild/protobuf";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  type FollowLinkRequest,
  type FollowLinkResponse,
  FollowLinkResponseSchema,
  type NativeService,
} from "../../gen/uas/native/v1/native_service_pb.ts";
import { type Caller, callerKey, type KeyCaller, requestIdKey, requireActive } from "../caller.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { checkRequest } from "../inference/headers.ts";
import { NativeBody } from "./body.ts";
import type { NativeAsk, NativeContext } from "./context.ts";
import { NativeDoor } from "./door.ts";
import { cancel, list, poll } from "./jobs.ts";
import { callParts } from "./parts.ts";
import { passHeaders } from "./headers.ts";
import { asked, pass, relay } from "./pass.ts";
import { checkPath, noSuchAddress, readQuery } from "./path.ts";
import { submit } from "./submit.ts";
import { newId } from "../uuid.ts";

/** Makes it. */
export function createNativeService(context: NativeContext): ServiceImpl<typeof NativeService> {
  return {
    exchange: (request, { values, signal }) => {
      const caller = keyCaller(values.get(callerKey));
      const ask = find(request, context, { caller, requestId: values.get(requestIdKey), signal });
      return run(ask, context);
    },

    followLink: (request, { signal }) => follow(request, context, signal),
  };
}

function run(ask: NativeAsk, context: NativeContext): AsyncIterable<ExchangeResponse> {
  const { route } = ask;
  if (route.kind === "call") {
    const { caller, requestId, signal } = ask;
    const start = { context: { caller, requestId, signal }, callId: newId() };
    return context.exchange.through(new NativeDoor({ ...ask, route }, context), callParts, start);
  }
  requireActive(ask.caller);
  return counted(answerOf(ask, context), context);
}

/** What costs nothing by itself. */
function answerOf(ask: NativeAsk, context: NativeContext): AsyncGenerator<ExchangeResponse> {
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

/** What a link leads to, for whoever has it. */
async function* follow(
  { prefix, token, headers }: FollowLinkRequest,
  context: NativeContext,
  signal: AbortSignal,
): AsyncGenerator<FollowLinkResponse> {
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
    const answer = counted(relay(ask, context, { reply, onWhole: undefined }), context);
    for await (const { part } of answer) yield create(FollowLinkResponseSchema, { part });
  } finally {
    reply.body.cancel();
  }
}

/** A stopping gateway lets it finish. */
async function* counted(
  answer: AsyncGenerator<ExchangeResponse>,
  { calls }: NativeContext,
): AsyncGenerator<ExchangeResponse> {
  calls.enter();
  try {
    yield* answer;
  } finally {
    calls.leave();
  }
}

/** Finds the route. @throws GatewayError NOT_FOUND for everything that is not declared */
function find(
  message: ExchangeRequest,
  { vendors }: NativeContext,
  from: Pick<NativeAsk, "caller" | "requestId" | "signal">,
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

/** The access option lets nobody else through; an operator calling in process has no account to charge. */
function keyCaller(caller: Caller | undefined): KeyCaller {
  if (caller?.kind === "key") return caller;
  throw new GatewayError(ErrorCode.ACCESS_DENIED, "Calls to models need an API key: send one");
}
