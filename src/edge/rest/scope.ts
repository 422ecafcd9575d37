/** A dialect's Fastify scope: authentication, body parsing, and errors in that dialect. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Caller, gatewayStopping, resolveRequestId } from "../../core/caller.ts";
import { runInAccountContext } from "../../core/current-account.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { dialects } from "../../dialect/index.ts";
import { routeHeaders } from "./deprecation.ts";
import {
  checkBodyForm,
  errorReply,
  lacksName,
  nameMissing,
  noSuchPath,
  sendError,
  toGatewayError,
} from "./errors.ts";
import { keyInUrlHeaders, refuseKey, refuseMissingKey } from "./key-refusal.ts";
import type { ScopeOptions } from "./options.ts";
import { headerText, platformKeyOf, readBody, replyBeforeBodyEnds } from "./request-parts.ts";
import type { RestRoute } from "./route-table.ts";
import { registerUnary } from "./unary-route.ts";
import { adviceFor } from "./unserved.ts";
import { conditionOf, constraintsOf } from "./when-header.ts";
import { registerStream } from "./bytes-routes.ts";
import { isWireMethod, registerWire } from "./wire-routes.ts";

/** The state of a request after its head was read. */
export interface RequestState {
  readonly requestId: string;
  readonly key: string;
  readonly caller: Caller;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Set before the body is read; undefined if the request was refused earlier. */
    state: RequestState | undefined;
    /** The documented code of the error response; empty on success. */
    errorCode: string;
    /** Whether a service logs and records the request. */
    isRecorded: boolean;
    /** For parsers of bodies, which get no reply. */
    response: ServerResponse;
  }
}

/** Registers a dialect's routes in a separate scope. */
export async function registerScope(scope: FastifyInstance, options: ScopeOptions): Promise<void> {
  prepareScope(scope, options);
  scope.addContentTypeParser("application/json", readWith(options.bodies));
  const idHeaders = dialects[options.dialect].requestIdHeaders;
  for (const route of options.routes) {
    // Direct routes are registered elsewhere; these hooks are not for them.
    if (!options.direct.wire.has(route.method)) registerRoute(scope, options, route);
  }
  for (const routes of placesOf(options.routes)) refuseOtherMethods(scope, { routes, idHeaders });
}

/**
 * Common setup of all scopes: errors in the dialect, one log line and one count per request, and no
 * body unless a route parses it.
 */
export function prepareScope(
  scope: FastifyInstance,
  options: Pick<ScopeOptions, "dialect" | "requests" | "metrics" | "bodies">,
): void {
  scope.decorateRequest("state", undefined);
  scope.decorateRequest("errorCode", "");
  scope.decorateRequest("isRecorded", false);
  scope.decorateRequest("response");
  scope.removeAllContentTypeParsers();
  scope.setErrorHandler(async (error, request, reply) => {
    const shown = toGatewayError(error);
    request.errorCode = shown.meaning.word;
    if (shown.code === ErrorCode.INTERNAL_ERROR) {
      const { requestId } = request.state ?? {};
      options.requests.failed(requestId, shown);
    }
    if (request.raw.complete) return sendError(reply, options.dialect, shown);
    const { status, headers, body } = errorReply(reply, options.dialect, shown);
    reply.hijack();
    const early = {
      status,
      headers: { ...(reply.getHeaders() as typeof headers), ...headers },
      body,
    };
    await replyBeforeBodyEnds(request.raw, reply.raw, early);
    return reply;
  });
  observe(scope, options);
  scope.addHook("preHandler", ({ state }, _reply, done) =>
    runInAccountContext(state?.caller, done),
  );
}

/** A parser that reads a body, of any content type that it is registered for, as bytes. */
export function readWith(bodies: ScopeOptions["bodies"]) {
  return (request: FastifyRequest, raw: IncomingMessage): Promise<Buffer> =>
    readBody(raw, request.response, { bodies, caller: request.state?.caller });
}

function registerRoute(scope: FastifyInstance, options: ScopeOptions, route: RestRoute): void {
  const hasBody = route.route.method === "POST";
  const isCall = hasBody && route.method.idempotency === Idempotency.IDEMPOTENCY_UNKNOWN;
  const announced = routeHeaders(route);
  const onRequest = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (announced !== undefined) reply.headers(announced);
    const requestId = route.route.omitRequestId
      ? ""
      : echoRequestId(request, reply, dialects[options.dialect].requestIdHeaders);
    if (!options.isOpen()) {
      reply.header("connection", "close");
      throw gatewayStopping();
    }
    const { key, isInUrl } = platformKeyOf(request);
    if (isInUrl) reply.headers(keyInUrlHeaders);
    if (key === undefined) throw refuseMissingKey(options.metrics);
    const found = await options.authenticate(key);
    if (found === undefined || found.kind === "refused") {
      const { onRefusedKey } = options;
      const path = isCall ? route.route.path : undefined;
      throw refuseKey(request, found, { onRefusedKey, requestId, path });
    }
    request.state = { requestId, key, caller: found };
    if (hasBody) checkBodyForm(request);
  };
  registrarOf(route.method)(scope, { ...options, onRequest, route });
}

/** Picks the registrar for the RPC kind. */
function registrarOf(method: DescMethod): typeof registerUnary {
  if (isWireMethod(method)) return registerWire;
  if (method.methodKind === "unary") return registerUnary;
  return registerStream;
}

/** Determines the request id and echoes it in the response headers. */
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

/** Groups routes by path and condition. */
function placesOf(routes: readonly RestRoute[]): Iterable<readonly [RestRoute, ...RestRoute[]]> {
  const places = Map.groupBy(routes, (route) => `${route.url} ${conditionOf(route) ?? ""}`);
  return places.values() as Iterable<readonly [RestRoute, ...RestRoute[]]>;
}

/** All routes of one path and condition. */
interface PlaceRoutes {
  readonly routes: readonly [RestRoute, ...RestRoute[]];
  /** The headers that carry the request id. */
  readonly idHeaders: readonly string[];
}

/** Replies 405 if the path exists for other methods, before the key is checked. */
function refuseOtherMethods(scope: FastifyInstance, { routes, idHeaders }: PlaceRoutes): void {
  const allowed = new Set(routes.map((each) => each.route.method));
  if (allowed.has("GET")) allowed.add("HEAD");
  const others = scope.supportedMethods.filter((method) => !allowed.has(method));
  const allow = [...allowed].join(", ");
  const [{ url }] = routes;
  const omitId = routes.every((each) => each.route.omitRequestId);
  scope.route({
    method: others,
    url,
    constraints: constraintsOf(routes[0]),
    onRequest: async (request, reply) => {
      if (!omitId) echoRequestId(request, reply, idHeaders);
      const [path = ""] = request.url.split("?");
      // A name that only looks like an id, as in /v1/responses/compact.
      if (url.includes(":") && adviceFor(path) !== undefined) {
        throw noSuchPath(request.method, path);
      }
      if (lacksName(request.params as object)) {
        throw nameMissing(request.method, path, url);
      }
      reply.header("allow", allow);
      if (!isWebSocket(request)) throw notAllowed(request.method, allow);
      // Further bytes on this connection are unlikely to be HTTP.
      reply.header("connection", "close");
      throw noWebSocket(allow);
    },
    handler: () => undefined,
  });
}

/** The error for a path that exists for other methods only. */
export function notAllowed(method: string, allow: string): GatewayError {
  const message = `${method} is not allowed here: use ${allow}`;
  return new GatewayError(ErrorCode.METHOD_NOT_ALLOWED, message);
}

function isWebSocket({ headers }: FastifyRequest): boolean {
  return headers.upgrade?.toLowerCase() === "websocket";
}

/**
 * The error for WebSocket clients. They interpret 426 as "use HTTP instead" at once; any other
 * status they retry for seconds.
 */
function noWebSocket(allow: string): GatewayError {
  const message = `WebSockets are not supported on this path: send the request with ${allow}; \`"stream": true\` streams the reply`;
  return new GatewayError(ErrorCode.METHOD_NOT_ALLOWED, message, { status: 426 });
}

/** Counts requests, and logs those without a call record. */
function observe(
  scope: FastifyInstance,
  { metrics, requests }: Pick<ScopeOptions, "metrics" | "requests">,
): void {
  scope.addHook("onRequest", (request, reply, done) => {
    const startedMs = performance.now();
    const { raw } = reply;
    request.response = raw;
    metrics.requestsInFlight.inc();
    // `close` is emitted exactly once, also after a disconnect and for hijacked streams.
    raw.on("close", () => {
      metrics.requestsInFlight.dec();
      const route = request.routeOptions.url ?? "";
      const status = raw.headersSent ? raw.statusCode : 499;
      metrics.countRequest(route, status);
      if (request.isRecorded) return;
      // Includes requests that were refused before their caller was known.
      const requestId = request.state?.requestId ?? String(reply.getHeader("x-request-id") ?? "");
      const { errorCode, method } = request;
      const durationMs = Math.round(performance.now() - startedMs);
      requests.ended({ requestId, route, method, status, errorCode, durationMs });
    });
    done();
  });
}
