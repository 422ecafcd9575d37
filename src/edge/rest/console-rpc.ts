/**
 * `/console/rpc`: the edge for browsers. Callers are identified by cookie; requests from other
 * sites are refused.
 */
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { gatewayStopping } from "../../core/caller.ts";
import { ErrorCode, GatewayError, toRpcError } from "../../core/errors.ts";
import { type BrowserSession, browserSessionKey } from "../../core/browser-session.ts";

/** Path prefix of the console's RPCs. */
export const consoleRpcPrefix = "/console/rpc";

/** Options of the console's edge. */
export interface ConsoleRpcOptions {
  /** The public origin, without a trailing slash; `undefined` means the one in the request. */
  readonly publicUrl: string | undefined;
  /** Whether new requests are served; false while the gateway drains. */
  readonly isOpen: () => boolean;
}

/** Response headers for everything under the prefix. */
const headersAlways = [
  ["cache-control", "no-store"],
  ["referrer-policy", "no-referrer"],
] as const;

/**
 * Prepares a scope that first refuses requests that do not come from the console's pages.
 *
 * @returns creates the context values of a request, with its browser session
 */
export function prepareConsole(
  scope: FastifyInstance,
  options: ConsoleRpcOptions,
): (request: FastifyRequest) => ContextValues {
  const replies = new WeakMap<FastifyRequest, FastifyReply>();
  scope.addHook("onRequest", async (request, reply) => {
    // On the response itself: RPCs bypass Fastify.
    for (const [name, value] of headersAlways) reply.raw.setHeader(name, value);
    if (!isOwnPage(request, options.publicUrl)) return refuse(reply, 403, notOurs());
    if (options.isOpen()) {
      replies.set(request, reply);
      return undefined;
    }
    reply.header("connection", "close");
    return refuse(reply, 503, gatewayStopping());
  });
  return (request) => {
    const session = browserSessionOf(request, replies.get(request), options.publicUrl);
    return createContextValues().set(browserSessionKey, session);
  };
}

/**
 * Whether a page of the gateway sent the request. Browsers state the origin, and pages cannot forge
 * it: `Sec-Fetch-Site` for https or localhost, `Origin` for everything but reads. A read with
 * neither header is allowed: only the sender sees the reply, and it changes nothing.
 */
function isOwnPage(request: FastifyRequest, publicUrl: string | undefined): boolean {
  const { "sec-fetch-site": site, origin } = request.headers;
  if (site !== undefined) return site === "same-origin";
  if (origin === undefined) return request.method === "GET";
  const host = URL.parse(origin)?.host;
  return host === request.host || (publicUrl !== undefined && origin === publicUrl);
}

function notOurs() {
  return new GatewayError(
    ErrorCode.ACCESS_DENIED,
    "Access denied: only pages of the console may call this; in a program, use an API key or the internal listener, or send `origin` with the gateway's address",
  );
}

/** Sends an error in the form that Connect clients read. */
function refuse(reply: FastifyReply, status: number, error: GatewayError): FastifyReply {
  const { rawMessage: message } = toRpcError(error);
  const code = status === 403 ? "permission_denied" : "unavailable";
  return reply.code(status).type("application/json").send({ code, message });
}

function browserSessionOf(
  request: FastifyRequest,
  reply: FastifyReply | undefined,
  publicUrl: string | undefined,
): BrowserSession {
  const isSecure = request.protocol === "https" || (publicUrl?.startsWith("https:") ?? false);
  // Browsers accept a cookie with this prefix only from this host and over https.
  const prefix = isSecure ? "__Host-" : "";
  const name = `${prefix}uas_console`;
  const knownName = `${prefix}uas_browser`;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  const cookies = new Map<string, string>();
  const set = (cookie: string, value: string, maxAgeMs: number): void => {
    // A later one of the same name replaces it.
    cookies.set(
      cookie,
      `${cookie}=${value}; Max-Age=${Math.floor(maxAgeMs / 1_000)}; ${attributes}`,
    );
    reply?.raw.setHeader("set-cookie", [...cookies.values()]);
  };
  return {
    // A connection that was closed meanwhile has no address, which Fastify's types omit.
    ipAddress: request.socket.remoteAddress === undefined ? "" : request.ip,
    userAgent: request.headers["user-agent"] ?? "",
    token: readCookie(request.headers.cookie, name),
    keep: (token = "", maxAgeMs = 0) => set(name, token, maxAgeMs),
    known: readCookie(request.headers.cookie, knownName),
    remember: (known, maxAgeMs) => set(knownName, known, maxAgeMs),
  };
}

/** Reads the value of a cookie. */
function readCookie(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(";") ?? []) {
    const [key, value = ""] = pair.trim().split("=", 2);
    if (key === name && value !== "") return value;
  }
  return undefined;
}
