/**
 * Native vendor APIs: everything below a prefix is passed to NativeService unchanged, body and
 * path. Fastify's usual handling does not run, because it breaks vendors' clients: it refuses empty
 * JSON bodies, decodes parameters, and reads a colon as the start of a parameter.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import { anonymous } from "../../core/caller.ts";
import { derived } from "../../core/derived.ts";
import { type FindRoute, interceptDirectRoutes } from "./direct-route.ts";
import { checkBodyForm } from "./errors.ts";
import type { NativePrefix } from "../../core/native-prefix.ts";
import type { FacadeOptions, NativeFields } from "./options.ts";
import { headerText, platformKeyOf, type PresentedKey, queryKey } from "./request-parts.ts";
import type { RestCallDeps, RestRouteOptions } from "./rest-call.ts";

/** An event-stream comment, which every vendor's client ignores. */
const keepAlive = Buffer.from(":\n\n");

/** The routes of the prefixes that are served now. */
export class NativeRoutes implements FindRoute {
  readonly #options: Pick<FacadeOptions, "natives" | "direct">;
  /** By prefix, with a slash at its end. */
  readonly #routes: () => readonly (readonly [string, RestRouteOptions])[];

  constructor(options: Pick<FacadeOptions, "natives" | "direct">) {
    this.#options = options;
    this.#routes = derived(options.natives, (natives) =>
      natives.map((native) => [`${native.prefix}/`, this.#routeOf(native)] as const),
    );
  }

  find(url: string): RestRouteOptions | undefined {
    return this.#routes().find(([prefix]) => url.startsWith(prefix))?.[1];
  }

  #routeOf(native: NativePrefix): RestRouteOptions {
    return nativeRoute(`${native.prefix}/*`, { native, direct: this.#options.direct });
  }
}

/**
 * Serves everything below the native prefixes that is no other path. They are no routes of Fastify,
 * since prefixes can change while it listens.
 */
export function registerNatives(
  app: FastifyInstance,
  natives: NativeRoutes,
  deps: RestCallDeps,
): void {
  app.addHook("onRequest", (request, reply, done) => {
    const route = request.is404 ? natives.find(request.raw.url ?? "") : undefined;
    if (route === undefined) return done();
    interceptDirectRoutes(route, deps)(request, reply);
    return undefined;
  });
}

function nativeRoute(
  label: string,
  { native, direct }: Pick<FacadeOptions, "direct"> & { readonly native: NativePrefix },
): RestRouteOptions {
  const { prefix } = native;
  const secrets = secretsOf(native);
  return {
    label,
    requestIdHeaders: ["x-request-id"],
    keyOf: (request) => keyIn(request, native),
    callerWithoutKey: (request) => (linkOf(request, native) === undefined ? undefined : anonymous),
    isCall: (request) =>
      native.isRecorded(request.method ?? "", pathOf(request).slice(prefix.length)),
    pathOf,
    checkHead(request) {
      if (request.method !== "GET") checkBodyForm(request);
    },
    handle(request, body, call) {
      const token = linkOf(request, native);
      const fields = readFields(request, body, { prefix, secrets });
      call.isRecorded = native.isRecorded(fields.method, fields.path);
      if (token === undefined) return direct.native(fields, call);
      return direct.followLink({ prefix, token, headers: fields.headers }, call);
    },
    errorBody: (error, requestId) => native.errorBody(error, requestId),
    keepAlive({ headers }) {
      const isEvents = (headers["content-type"] ?? "").startsWith("text/event-stream");
      return isEvents ? keepAlive : undefined;
    },
  };
}

/** The path without its query. */
function pathOf({ url = "" }: IncomingMessage): string {
  return url.split("?", 1)[0] ?? "";
}

/** The token in a path that is itself a credential; undefined for other paths. */
function linkOf({ method, url = "" }: IncomingMessage, { prefix }: NativePrefix) {
  if (method !== "GET" || !url.startsWith(`${prefix}/_s/`)) return undefined;
  return /^[\w-]+$/.exec(url.slice(`${prefix}/_s/`.length))?.[0];
}

/**
 * The key from the platform's three places, then from the vendor's; the first present one decides
 * (R-AUTH-1).
 */
function keyIn(request: IncomingMessage, { keyForms }: NativePrefix): PresentedKey {
  const { headers, url = "" } = request;
  const usual = platformKeyOf(request);
  const own = keyForms.map((form) => {
    if (form.in === "header") return headerText(headers[form.name])?.trim();
    if (form.in === "query") return queryKey(url, form.name)?.trim();
    const [scheme = "", ...rest] = (headers.authorization ?? "").trim().split(/ +/);
    return scheme.toLowerCase() === form.scheme.toLowerCase() ? rest.join(" ") : undefined;
  });
  const isInUrl =
    usual.isInUrl ||
    keyForms.some((form) => form.in === "query" && queryKey(url, form.name) !== undefined);
  return { key: usual.key ?? own.find((key) => key !== undefined && key !== ""), isInUrl };
}

/** The names of a request's parts that no service sees. */
interface Secrets {
  readonly params: ReadonlySet<string>;
  readonly headers: ReadonlySet<string>;
}

/** The native room picks further headers by the vendor's table. */
function secretsOf({ keyForms }: NativePrefix): Secrets {
  const namesIn = (place: "query" | "header"): string[] =>
    keyForms.flatMap((form) => (form.in === place ? [form.name] : []));
  return {
    params: new Set(["api-key", ...namesIn("query")]),
    headers: new Set(["authorization", "x-api-key", "cookie", ...namesIn("header")]),
  };
}

/** The request as received, without its keys. */
function readFields(
  { method = "", url = "", headers }: IncomingMessage,
  body: Buffer,
  { prefix, secrets }: Pick<NativePrefix, "prefix"> & { readonly secrets: Secrets },
): NativeFields {
  const at = url.indexOf("?");
  const path = at < 0 ? url : url.slice(0, at);
  const isOpen = (pair: string): boolean =>
    [...new URLSearchParams(pair).keys()].every((name) => !secrets.params.has(name));
  const pairs = at < 0 ? [] : url.slice(at + 1).split("&");
  const open: Record<string, string> = {};
  for (const name in headers) {
    const value = secrets.headers.has(name) ? undefined : headerText(headers[name]);
    if (value !== undefined) open[name] = value;
  }
  return {
    prefix,
    method,
    // A path that lies below the prefix only after decoding does not count.
    path: path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : "",
    query: pairs.filter(isOpen).join("&"),
    headers: open,
    body,
  };
}
