import type { IncomingMessage } from "node:http";
import { emptyBody } from "./errors.ts";
import { passedQuery } from "./request-head.ts";
import type { RestRoute } from "./route-table.ts";

/** The head of a request. */
type Head = Pick<IncomingMessage, "headers" | "url">;

/**
 * The fields that every RPC with a body in a wire style has, and those that only some have.
 *
 * @param forwarded the headers to pass on, by lower-case name
 * @throws GatewayError INVALID_REQUEST where there is no body
 */
export function readWireRequest(
  { headers: sent, url = "" }: Head,
  body: unknown,
  { route, forwarded }: { readonly route: RestRoute; readonly forwarded: ReadonlySet<string> },
) {
  if (!Buffer.isBuffer(body) || body.length === 0) throw emptyBody();
  const headers: Record<string, string> = {};
  for (const name of forwarded) {
    const value = sent[name];
    if (typeof value === "string") headers[name] = value;
  }
  const { dialect } = route;
  const { path, alwaysStream, platformAliases } = route.route;
  return { dialect, path, query: passedQuery(url), headers, body, alwaysStream, platformAliases };
}
