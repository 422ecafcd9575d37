/** NativeService: vendors' own interfaces, by one handler and a table for each vendor. */
import { randomUUIDv7 } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ExchangeRequest,
  ExchangeResponse,
  NativeService,
} from "../../gen/uas/native/v1/native_service_pb.ts";
import { type Caller, callerKey, type KeyCaller, requestIdKey, requireActive } from "../caller.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { checkRequest } from "../inference/headers.ts";
import type { NativePassRoute } from "../vendor/native.ts";
import { NativeBody } from "./body.ts";
import type { NativeAsk, NativeContext } from "./context.ts";
import { NativeDoor } from "./door.ts";
import { callParts } from "./parts.ts";
import { pass } from "./pass.ts";
import { checkPath, noSuchAddress, readQuery } from "./path.ts";

/** Makes it. */
export function createNativeService(context: NativeContext): ServiceImpl<typeof NativeService> {
  return {
    exchange: (request, { values, signal }) => {
      const caller = keyCaller(values.get(callerKey));
      const ask = find(request, context, { caller, requestId: values.get(requestIdKey), signal });
      return run(ask, context);
    },
  };
}

function run(ask: NativeAsk, context: NativeContext): AsyncIterable<ExchangeResponse> {
  const { route } = ask;
  if (route.kind === "call") {
    const { caller, requestId, signal } = ask;
    const start = { context: { caller, requestId, signal }, callId: randomUUIDv7() };
    return context.exchange.through(new NativeDoor({ ...ask, route }, context), callParts, start);
  }
  if (route.kind === "pass") return counted({ ...ask, route }, context);
  throw noSuchAddress(ask.method, ask.path);
}

/** A stopping gateway lets it finish. */
async function* counted(
  ask: NativeAsk<NativePassRoute>,
  context: NativeContext,
): AsyncGenerator<ExchangeResponse> {
  requireActive(ask.caller);
  context.calls.enter();
  try {
    yield* pass(ask, context);
  } finally {
    context.calls.leave();
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
