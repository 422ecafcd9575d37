import type { FastifyRequest } from "fastify";
import { emptyBody } from "./errors.ts";
import { passedQuery } from "./request-head.ts";
import type { RouteContext } from "./route-context.ts";

/**
 * The fields that every RPC with a body in a wire style has, and those that only some have.
 *
 * @param forwarded the headers to pass on, by lower-case name
 * @throws GatewayError INVALID_REQUEST where there is no body
 */
export function readWireRequest(
  request: FastifyRequest,
  { route, dialect }: RouteContext,
  forwarded: ReadonlySet<string>,
) {
  const { body } = request;
  if (!Buffer.isBuffer(body) || body.length === 0) throw emptyBody();
  const headers: Record<string, string> = {};
  for (const name of forwarded) {
    const value = request.headers[name];
    if (typeof value === "string") headers[name] = value;
  }
  const { path, alwaysStream, platformAliases } = route.route;
  const query = passedQuery(request.url);
  return { dialect, path, query, headers, body, alwaysStream, platformAliases };
}
