/** One dialect's routes: who calls, what its bodies are, how its errors look. */
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  type Caller,
  gatewayStopping,
  invalidKey,
  missingKey,
  resolveRequestId,
} from "../core/caller.ts";
import { discardedBodyBytesMax } from "../config/limits.ts";
import { type DialectId, dialects } from "../dialect/index.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { inLaneOf } from "../core/account-context.ts";
import { checkBodyForm, sendError, toGatewayError } from "./errors.ts";
import type { FacadeOptions } from "./options.ts";
import { headerText, platformKeyOf } from "./request-head.ts";
import type { RestRoute } from "./route-table.ts";
import { registerStream } from "./stream-route.ts";
import { registerUnary } from "./unary-route.ts";
import { conditionOf, constraintsOf } from "./when-header.ts";
import { isWireMethod, registerWire } from "./wire-route.ts";

export interface ScopeOptions extends FacadeOptions {
  readonly dialect: DialectId;
  readonly routes: readonly RestRoute[];
}

/** What a scope knows of a request once its head is read. */
export interface RequestState {
  readonly requestId: string;
  readonly key: string;
  readonly caller: Caller;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Set before any body is read; `undefined` where the request was refused before. */
    state: RequestState | undefined;
    /** The documented code of the error that it was answered with; empty on success. */
    errorCode: string;
    /** Whether a service logs and records it. */
    isRecorded: boolean;
  }
}

/** Registers a dialect's routes in a scope of their own. */
export async function registerScope(scope: FastifyInstance, options: ScopeOptions): Promise<void> {
  prepareScope(scope, options);
  scope.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) =>
    done(null, body),
  );
  const idHeaders = dialects[options.dialect].requestIdHeaders;
  for (const route of options.routes) {
    // Those are registered elsewhere: none of these hooks is for them.
    if (!options.direct.wire.has(route.method)) registerRoute(scope, options, route);
  }
  for (const routes of placesOf(options.routes)) refuseOtherMethods(scope, { routes, idHeaders });
}

/** What every scope does: errors in its style, a line and a count for each request, no body unless it says so. */
export function prepareScope(
  scope: FastifyInstance,
  options: Pick<ScopeOptions, "dialect" | "log" | "metrics">,
): void {
  scope.decorateRequest("state", undefined);
  scope.decorateRequest("errorCode", "");
  scope.decorateRequest("isRecorded", false);
  scope.removeAllContentTypeParsers();
  scope.setErrorHandler(async (error, request, reply) => {
    const told = toGatewayError(error);
    request.errorCode = told.meaning.word;
    if (told.code === ErrorCode.INTERNAL_ERROR) {
      const { requestId } = request.state ?? {};
      options.log.error({ requestId, err: told.cause ?? told }, "a request failed");
    }
    if (told.code === ErrorCode.REQUEST_TOO_LARGE) await letBodyEnd(request, reply);
    return sendError(reply, options.dialect, told);
  });
  observe(scope, options);
  scope.addHook("preHandler", ({ state }, _reply, done) => inLaneOf(state?.caller, done));
}

/** Waits for the end of a body that is too long, and throws it away. Many clients read no reply before they have sent
 * all. Were they answered and the connection closed meanwhile, they would see a broken pipe in place of the 413, and
 * their SDKs would send everything again. Not for bodies of unknown or enormous length: there Fastify closes. */
async function letBodyEnd({ headers, raw }: FastifyRequest, reply: FastifyReply): Promise<void> {
  const isBearable = Number(headers["content-length"]) <= discardedBodyBytesMax;
  if (!isBearable || raw.readableEnded || raw.destroyed) return;
  reply.removeHeader("connection");
  // `close` comes for a client that leaves meanwhile, too.
  await new Promise<void>((resolve) => {
    raw.once("close", () => resolve());
    raw.resume();
  });
}

function registerRoute(scope: FastifyInstance, options: ScopeOptions, route: RestRoute): void {
  const hasBody = route.route.method === "POST";
  const isCall = hasBody && route.method.idempotency === Idempotency.IDEMPOTENCY_UNKNOWN;
  const onRequest = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const requestId = route.route.omitRequestId
      ? ""
      : echoRequestId(request, reply, dialects[options.dialect].requestIdHeaders);
    if (!options.isOpen()) {
      reply.header("connection", "close");
      throw gatewayStopping();
    }
    const { key, isInUrl } = platformKeyOf(request);
    if (isInUrl) {
      // The key stands in the URL: keep the answer out of caches, and the URL out of referrers.
      reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer");
    }
    if (key === undefined) {
      options.metrics.authFailures.inc({ reason: "missing" });
      throw missingKey();
    }
    const path = isCall ? route.route.path : undefined;
    const caller = await authenticate(request, options, { key, requestId, path });
    request.state = { requestId, key, caller };
    if (hasBody) checkBodyForm(request);
  };
  registrarOf(route.method)(scope, { ...options, onRequest, route });
}

/** What is known of a request when its key is checked. */
export interface Presented {
  readonly key: string;
  readonly requestId: string;
  /** What is called, as records say it; `undefined`: not a call that has a record. */
  readonly path: string | undefined;
}

/**
 * Checks a key. A call with one that is known and no good is recorded for its account: its caller learns nothing.
 *
 * @throws GatewayError UNAUTHENTICATED
 */
export async function authenticate(
  request: FastifyRequest,
  options: Pick<FacadeOptions, "authenticate" | "onRefusedKey">,
  { key, requestId, path }: Presented,
): Promise<Caller> {
  const found = await options.authenticate(key);
  if (found !== undefined && found.kind !== "refused") return found;
  if (found !== undefined && path !== undefined) {
    request.isRecorded = options.onRefusedKey?.(found, { requestId, path }) ?? false;
  }
  throw invalidKey();
}

/** How the routes of a method work, by the form of the method. */
function registrarOf(method: DescMethod): typeof registerUnary {
  if (isWireMethod(method)) return registerWire;
  if (method.methodKind === "unary") return registerUnary;
  return registerStream;
}

/** Resolves the request's id and sends it back with whatever is answered. */
export function echoRequestId(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  names: readonly string[],
): string {
  const id = resolveRequestId(
    headerText(headers["x-request-id"]),
    headerText(headers["request-id"]),
  );
  for (const name of names) reply.header(name, id);
  return id;
}

/** The routes by path and condition. */
function placesOf(routes: readonly RestRoute[]): Iterable<readonly [RestRoute, ...RestRoute[]]> {
  const places = Map.groupBy(routes, (route) => `${route.url} ${conditionOf(route) ?? ""}`);
  return places.values() as Iterable<readonly [RestRoute, ...RestRoute[]]>;
}

/** All routes of one place. */
interface PlaceRoutes {
  readonly routes: readonly [RestRoute, ...RestRoute[]];
  /** The headers that carry the request id. */
  readonly idHeaders: readonly string[];
}

/** Answers 405 where the path exists for other methods, before any key is looked at. */
function refuseOtherMethods(scope: FastifyInstance, { routes, idHeaders }: PlaceRoutes): void {
  const allowed = new Set(routes.map((each) => each.route.method));
  if (allowed.has("GET")) allowed.add("HEAD");
  const others = scope.supportedMethods.filter((method) => !allowed.has(method));
  const allow = [...allowed].join(", ");
  const omitId = routes.every((each) => each.route.omitRequestId);
  scope.route({
    method: others,
    url: routes[0].url,
    constraints: constraintsOf(routes[0]),
    onRequest: async (request, reply) => {
      if (!omitId) echoRequestId(request, reply, idHeaders);
      reply.header("allow", allow);
      if (!isWebSocket(request)) throw notAllowed(request.method, allow);
      // Whatever follows on this connection is hardly HTTP.
      reply.header("connection", "close");
      throw noWebSocket(allow);
    },
    handler: () => undefined,
  });
}

/** The error where a path exists for other methods only. */
export function notAllowed(method: string, allow: string): GatewayError {
  const told = `${method} is not allowed here: use ${allow}`;
  return new GatewayError(ErrorCode.METHOD_NOT_ALLOWED, told);
}

function isWebSocket({ headers }: FastifyRequest): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/** Clients that would rather talk through a WebSocket take 426 for "not here, ask by HTTP", at once; any
 * other status they try again for seconds. */
function noWebSocket(allow: string): GatewayError {
  const told = `WebSockets are not served here: send the request by ${allow}, and have its reply streamed by \`"stream": true\``;
  return new GatewayError(ErrorCode.METHOD_NOT_ALLOWED, told, { status: 426 });
}

/** Counts requests, and logs those that no call record tells of. */
function observe(
  scope: FastifyInstance,
  { metrics, log }: Pick<ScopeOptions, "metrics" | "log">,
): void {
  scope.addHook("onRequest", (request, reply, done) => {
    const startedMs = performance.now();
    const { raw } = reply;
    metrics.requestsInFlight.inc();
    // `close` comes exactly once, also for a client that left and a stream that was hijacked.
    raw.on("close", () => {
      metrics.requestsInFlight.dec();
      const route = request.routeOptions.url ?? "";
      const status = raw.headersSent ? raw.statusCode : 499;
      metrics.countRequest(route, status);
      if (request.isRecorded) return;
      // Also of requests that were refused before anybody was known to have sent them.
      const requestId = request.state?.requestId ?? String(reply.getHeader("x-request-id") ?? "");
      const { errorCode, method } = request;
      const durationMs = Math.round(performance.now() - startedMs);
      log.info({ requestId, route, method, status, errorCode, durationMs }, "request");
    });
    done();
  });
}
