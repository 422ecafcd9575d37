/** What passes between HTTP and RPCs beside bodies: a few headers that mean the same on both. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { matchesEtag } from "../etag.ts";

/** Headers of requests that RPCs read. */
const requestHeaders = ["if-none-match", "idempotency-key"] as const;

/** Headers of replies that RPCs set. Others stay behind: they are of RPCs, or tell what nobody asked for. */
const replyHeaders = ["etag", "retry-after", "idempotent-replayed"] as const;

/** Those of a request that RPCs read. */
export function forwardedHeaders({ headers }: FastifyRequest): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of requestHeaders) {
    const value = headers[name];
    if (typeof value === "string") passed[name] = value;
  }
  return passed;
}

/**
 * Sets the headers that an RPC sent.
 *
 * @returns whether the client has the answer already: it is then 304, and without a body
 */
export function passHeaders(
  header: Headers,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  for (const name of replyHeaders) {
    const value = header.get(name);
    if (value !== null) reply.header(name, value);
  }
  const etag = header.get("etag");
  if (etag === null) return false;
  // Without it a cache between us and the client could answer for hours.
  reply.header("cache-control", "private, no-cache");
  return request.method === "GET" && matchesEtag(request.headers["if-none-match"], etag);
}
