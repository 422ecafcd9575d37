/**
 * Lets pages of configured origins call the public listener (Fetch standard, CORS). Cookies are
 * never allowed, so such a page can do only what its API key allows.
 */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";

/** Time for which browsers cache a preflight: the maximum that Chrome accepts. */
const maxAgeSeconds = 7_200;

/** The console's pages have cookies: no other page calls below this path. */
const consolePath = /^\/console(?:\/|$|\?)/;

/**
 * Registers the headers for all routes that are registered afterwards.
 *
 * @param origins returns exact origins, or `*`; called for each request of a page
 */
export function registerCors(app: FastifyInstance, origins: () => readonly string[]): void {
  app.addHook("onRequest", (request, reply, done) => {
    const { method, headers } = request;
    const { origin } = headers;
    if (origin === undefined || consolePath.test(request.url)) return done();
    const known = origins();
    if (known.length === 0) return done();
    const isOpen = known.includes("*");
    const { raw } = reply;
    if (!isOpen) raw.setHeader("vary", "origin");
    if (isOpen || known.includes(origin)) {
      raw.setHeader("access-control-allow-origin", isOpen ? "*" : origin);
      raw.setHeader("access-control-expose-headers", "*");
      if (method === "OPTIONS" && isPreflight(headers)) {
        reply.hijack();
        return answerPreflight(headers, raw);
      }
    }
    return done();
  });
}

function isPreflight(headers: IncomingHttpHeaders): boolean {
  return headers["access-control-request-method"] !== undefined;
}

/** Every method and header is allowed: the request itself is checked as any other. */
function answerPreflight(headers: IncomingHttpHeaders, response: ServerResponse): void {
  const { "access-control-request-method": method = "", "access-control-request-headers": names } =
    headers;
  response.writeHead(204, {
    "access-control-allow-methods": method,
    ...(names !== undefined && { "access-control-allow-headers": names }),
    "access-control-max-age": String(maxAgeSeconds),
  });
  response.end();
}
