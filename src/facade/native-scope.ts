/**
 * Vendors' own interfaces: everything below a prefix goes to NativeService as it came, bytes and address. A scope
 * of its own for each: what Fastify does for JSON elsewhere (it refuses empty bodies and bytes that call themselves
 * JSON, decodes parameters, reads a colon as the beginning of one) breaks vendors' clients.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";
import { anonymous } from "../core/caller.ts";
import { directly } from "./direct-route.ts";
import { checkBodyForm } from "./errors.ts";
import type { NativePrefix } from "../core/native-prefix.ts";
import type { FacadeOptions, NativeFields } from "./options.ts";
import { headerText, platformKeyOf, type PresentedKey, queryKey } from "./request-head.ts";
import type { RestCallDeps, RestRouteOptions } from "./rest-call.ts";

/** What one prefix needs. */
export interface NativeScopeOptions extends FacadeOptions {
  readonly native: NativePrefix;
  readonly deps: RestCallDeps;
}

/** A comment of event streams: every vendor's client skips it. */
const keepAlive = Buffer.from(":\n\n");

/** Registers one prefix. */
export async function registerNative(
  scope: FastifyInstance,
  options: NativeScopeOptions,
): Promise<void> {
  const url = `${options.native.prefix}/*`;
  const onRequest = directly(nativeRoute(url, options), options.deps);
  scope.all(url, { onRequest, handler: () => undefined });
}

function nativeRoute(
  label: string,
  { native, direct }: Pick<NativeScopeOptions, "native" | "direct">,
): RestRouteOptions {
  const { prefix } = native;
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
      const fields = readFields(request, body, native);
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

/** The path of a request without its query. */
function pathOf({ url = "" }: IncomingMessage): string {
  return url.split("?", 1)[0] ?? "";
}

/** The token of an address that is a key for itself; `undefined`: it is another. */
function linkOf({ method, url = "" }: IncomingMessage, { prefix }: NativePrefix) {
  if (method !== "GET" || !url.startsWith(`${prefix}/_s/`)) return undefined;
  return /^[\w-]+$/.exec(url.slice(`${prefix}/_s/`.length))?.[0];
}

/** The platform's three places, then the vendor's own: the first one that is there decides (R-AUTH-1). */
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

/** The request as it came, without its keys. */
function readFields(
  { method = "", url = "", headers }: IncomingMessage,
  body: Buffer,
  { prefix, keyForms }: NativePrefix,
): NativeFields {
  const at = url.indexOf("?");
  const path = at < 0 ? url : url.slice(0, at);
  const secret = new Set(["api-key"]);
  const hidden = new Set(secretHeaders);
  for (const form of keyForms) {
    if (form.in === "query") secret.add(form.name);
    if (form.in === "header") hidden.add(form.name);
  }
  const isOpen = (pair: string): boolean =>
    [...new URLSearchParams(pair).keys()].every((name) => !secret.has(name));
  const pairs = at < 0 ? [] : url.slice(at + 1).split("&");
  return {
    prefix,
    method,
    // A path that only becomes one below the prefix by decoding is none.
    path: path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : "",
    query: pairs.filter(isOpen).join("&"),
    headers: Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) => {
        const one = hidden.has(name) ? undefined : headerText(value);
        return one === undefined ? [] : [[name, one]];
      }),
    ),
    body,
  };
}

/** What no service needs to know. The native room takes those that the vendor's table names. */
const secretHeaders = new Set(["authorization", "x-api-key", "cookie"]);
