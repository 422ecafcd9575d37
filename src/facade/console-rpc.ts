/** `/console/rpc`: the edge for browsers. A cookie says who calls, and pages of other sites are turned away. */
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { gatewayStopping } from "../core/caller.ts";
import { ErrorCode, GatewayError, toRpcError } from "../core/errors.ts";
import { type Visit, visitKey } from "../core/browser-session.ts";

/** Where the console's RPCs are. */
export const consoleRpcPrefix = "/console/rpc";

/** What the edge needs of the rest. */
export interface ConsoleRpcOptions {
  /** The origin that browsers know, without a trailing slash; `undefined`: the one that they say. */
  readonly publicUrl: string | undefined;
  /** Whether new requests are served: false while the gateway drains. */
  readonly isOpen: () => boolean;
}

/** What everything under the prefix says. */
const headersAlways = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
} as const;

/**
 * Prepares a scope: what does not come from the console's own pages is turned away before anything else is looked at.
 *
 * @returns what the RPCs of a request are told about its browser
 */
export function prepareConsole(
  scope: FastifyInstance,
  options: ConsoleRpcOptions,
): (request: FastifyRequest) => ContextValues {
  const replies = new WeakMap<FastifyRequest, FastifyReply>();
  scope.addHook("onRequest", async (request, reply) => {
    reply.headers(headersAlways);
    if (!isOwnPage(request, options.publicUrl)) return refuse(reply, 403, notOurs());
    if (options.isOpen()) {
      replies.set(request, reply);
      return undefined;
    }
    reply.header("connection", "close");
    return refuse(reply, 503, gatewayStopping());
  });
  return (request) => {
    const visit = visitOf(request, replies.get(request), options.publicUrl);
    return createContextValues().set(visitKey, visit);
  };
}

/**
 * Whether one of our own pages asks. Browsers say where a request comes from, and pages cannot change what they say:
 * `Sec-Fetch-Site` where the address is https or this machine, `Origin` with everything but reads. A read that says
 * neither is let through: its answer is for nobody but who asks, and it changes nothing.
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
    "Access denied: calls of the console come from its own pages; a program sends `origin` with the gateway's address, or better uses an API key or the internal listener",
  );
}

/** Answers as Connect's clients read it. */
function refuse(reply: FastifyReply, status: number, error: GatewayError): FastifyReply {
  const { rawMessage: message } = toRpcError(error);
  const code = status === 403 ? "permission_denied" : "unavailable";
  return reply.code(status).type("application/json").send({ code, message });
}

function visitOf(
  request: FastifyRequest,
  reply: FastifyReply | undefined,
  publicUrl: string | undefined,
): Visit {
  const isSecure = request.protocol === "https" || (publicUrl?.startsWith("https:") ?? false);
  // Browsers take a name with this prefix from nobody but this very host, and over https only.
  const name = isSecure ? "__Host-uas_console" : "uas_console";
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  return {
    ipAddress: request.ip,
    userAgent: request.headers["user-agent"] ?? "",
    token: readCookie(request.headers.cookie, name),
    keep(token = "", maxAgeMs = 0) {
      const seconds = Math.floor(maxAgeMs / 1_000);
      const cookie = `${name}=${token}; Max-Age=${seconds}; ${attributes}`;
      // Of several the last one counts.
      reply?.removeHeader("set-cookie").header("set-cookie", cookie);
    },
  };
}

/** The value of a cookie. */
function readCookie(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(";") ?? []) {
    const [key, value = ""] = pair.trim().split("=", 2);
    if (key === name && value !== "") return value;
  }
  return undefined;
}
