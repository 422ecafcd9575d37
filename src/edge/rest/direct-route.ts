/**
 * Routes of model calls. The facade calls the handler of the contract's method directly, with a
 * sink that writes to the socket. There is no client, transport, interceptor or iterator between
 * them, and Fastify's hooks and parsers do not run.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { routingHeaders } from "../../dialect/dialect.ts";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { MediaOperation } from "../../../gen/uas/http/v1/http_pb.ts";
import { ExchangeRequestSchema } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { ShortLivedSet } from "../../core/short-lived.ts";
import { dialects, wireStyle } from "../../dialect/index.ts";
import { routeHeaders } from "./deprecation.ts";
import { checkBodyForm, emptyBody, noForm, unsupportedMediaType } from "./errors.ts";
import type { FacadeOptions, HandleWire } from "./options.ts";
import { RestCall, type RestCallDeps, type RestRouteOptions } from "./rest-call.ts";
import { namedHeaders, passedQuery, platformKeyOf } from "./request-parts.ts";
import type { RestRoute } from "./route-table.ts";
import { constraintsOf } from "./when-header.ts";

/** Dependencies shared by the direct routes of a listener. */
export function createDirectDeps(options: FacadeOptions): RestCallDeps {
  const { authenticate, onRefusedKey, metrics, requests, isOpen, requireCapacity, stopping } =
    options;
  const { bodies } = options;
  const running = new ShortLivedSet<RestCall>();
  stopping.addEventListener("abort", () => {
    for (const call of running.list()) call.cancel(stopping.reason);
  });
  const refusedKeyHook = onRefusedKey && { onRefusedKey };
  return {
    authenticate,
    metrics,
    requests,
    isOpen,
    requireCapacity,
    bodies,
    running,
    ...refusedKeyHook,
  };
}

/** Takes over requests of direct routes before Fastify processes them. */
export function interceptDirectRoutes(
  route: RestRouteOptions,
  deps: RestCallDeps,
): (request: FastifyRequest, reply: FastifyReply) => void {
  return ({ raw }, reply) => {
    reply.hijack();
    void new RestCall(raw, reply.raw, { route, deps }).serve();
  };
}

/** Finds the route of an address; undefined if there is none. */
export interface FindRoute {
  find(url: string): RestRouteOptions | undefined;
}

/**
 * Requests that are served as soon as Node has read their head: requests to the exact path of a
 * direct route, or below a native prefix. All other requests go through Fastify, as do requests
 * from pages, which may need additional headers. Therefore Fastify's settings affect a direct route
 * only by its address.
 */
export class DirectPaths {
  readonly #routes = new Map<string, RestRouteOptions>();
  readonly #natives: FindRoute;
  readonly #deps: RestCallDeps;

  /** @param natives finds the routes of native prefixes */
  constructor(deps: RestCallDeps, natives: FindRoute) {
    this.#deps = deps;
    this.#natives = natives;
  }

  /**
   * Adds a route, if its path belongs to no other route.
   *
   * @param others all routes of the listener
   */
  add(route: RestRoute, options: RestRouteOptions, others: readonly RestRoute[]): void {
    const isPlain = route.route.method === "POST" && !/[:*]/.test(route.url);
    const alike = others.filter(({ url }) => url === route.url);
    if (!isPlain || alike.length > 1) return;
    this.#routes.set(route.url, options);
  }

  /** Serves a request; returns whether it did. */
  serve(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.method !== "POST" || request.headers.origin !== undefined) return false;
    const { url = "" } = request;
    const route = this.#routes.get(url) ?? this.#natives.find(url);
    if (route === undefined) return false;
    void new RestCall(request, response, { route, deps: this.#deps }).serve();
    return true;
  }
}

/**
 * Registers a direct route of the contract.
 *
 * @returns the options for its requests
 */
export function registerDirect(
  scope: FastifyInstance,
  route: RestRoute,
  { deps, handle }: { readonly deps: RestCallDeps; readonly handle: HandleWire },
): RestRouteOptions {
  const options = wireRoute(route, handle);
  scope.route({
    method: route.route.method,
    url: route.url,
    constraints: constraintsOf(route),
    onRequest: interceptDirectRoutes(options, deps),
    handler: () => undefined,
  });
  return options;
}

/** A route whose bodies are in a wire style. */
function wireRoute(route: RestRoute, handle: HandleWire): RestRouteOptions {
  const { path, mediaOperation, alwaysStream, platformAliases, compact } = route.route;
  const { dialect, method, url: label } = route;
  const style = dialects[dialect];
  const text = wireStyle(dialect);
  if (text === undefined) throw new Error(`${label}: its dialect carries no text generation`);
  const readHeaders = [...text.forwardedHeaders, ...routingHeaders];
  const isFormTaken = (request: IncomingMessage): boolean =>
    takesForms.has(mediaOperation) && isForm(request);
  const isCall = method.idempotency === Idempotency.IDEMPOTENCY_UNKNOWN;
  return {
    label,
    requestIdHeaders: style.requestIdHeaders,
    fixedHeaders: routeHeaders(route),
    keyOf: platformKeyOf,
    isCall: () => isCall,
    pathOf: () => path,
    checkHead(request) {
      checkBodyForm(request);
      if (isFormTaken(request)) return;
      const isMeantAsForm = takesForms.has(mediaOperation) && isMultipart(request);
      if (takesOnlyForms.has(mediaOperation) || isMeantAsForm) throw noForm();
      checkJson(request);
    },
    isForm: isFormTaken,
    handle(request, body, call, form) {
      if (body.length === 0 && form === undefined) throw emptyBody();
      call.isRecorded = true;
      const { headers, url = "" } = request;
      return handle(
        {
          $typeName: ExchangeRequestSchema.typeName,
          dialect,
          path,
          query: passedQuery(url),
          headers: namedHeaders(headers, readHeaders),
          body,
          alwaysStream,
          platformAliases,
          compact,
          strict: headers["x-uas-strict"] === "true",
          reportCost: headers["x-uas-cost"] === "true",
          mediaOperation,
          form,
        },
        call,
      );
    },
    errorBody: (error, requestId) => style.errorBody(error, requestId),
    // In any other stream, a comment would be content.
    keepAlive: ({ headers }) =>
      headers["content-type"]?.startsWith("text/event-stream") ? text.keepAlive : undefined,
  };
}

/** The operations on files of the request itself. */
const takesOnlyForms: ReadonlySet<MediaOperation> = new Set([
  MediaOperation.VARY_IMAGES,
  MediaOperation.TRANSCRIBE,
  MediaOperation.TRANSLATE,
]);

/** The operations that take files. Images to edit can also be named in JSON. */
const takesForms: ReadonlySet<MediaOperation> = new Set([
  ...takesOnlyForms,
  MediaOperation.EDIT_IMAGES,
]);

function isForm({ headers }: IncomingMessage): boolean {
  return /^multipart\/form-data\s*;/i.test(headers["content-type"] ?? "");
}

/** Whether a body is a form, maybe without its boundary. */
function isMultipart({ headers }: IncomingMessage): boolean {
  return /^multipart\//i.test(headers["content-type"] ?? "");
}

/** Refuses bodies with another content type than JSON. A missing body is reported later. */
function checkJson({ headers }: IncomingMessage): void {
  const type = headers["content-type"];
  if (type === undefined) {
    const length = headers["content-length"];
    const isEmpty = headers["transfer-encoding"] === undefined && (length ?? "0") === "0";
    if (!isEmpty) throw unsupportedMediaType();
    return;
  }
  if (type === "application/json") return;
  const [media = ""] = type.split(";", 1);
  if (media.trim().toLowerCase() !== "application/json") throw unsupportedMediaType();
}
