/** What the head of a request says. */
import type { IncomingMessage } from "node:http";
import { presentedKey } from "../core/caller.ts";
import { emptyBody } from "./errors.ts";
import type { RestRoute } from "./route-table.ts";

/** A header that came once or several times, as one text. */
export function headerText(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(", ") : header;
}

/** The value of `?api-key=`, or of another parameter. */
export function queryKey(url: string, name = "api-key"): string | undefined {
  const at = url.indexOf("?");
  if (at < 0) return undefined;
  return new URLSearchParams(url.slice(at + 1)).get(name) ?? undefined;
}

/** The query to pass on: without the key. */
function passedQuery(url: string): string {
  const at = url.indexOf("?");
  if (at < 0) return "";
  const pairs = url.slice(at + 1).split("&");
  return pairs.filter((pair) => !new URLSearchParams(pair).has("api-key")).join("&");
}

/** A key, and whether it stands in the address. */
export interface PresentedKey {
  /** `undefined`: none was sent. */
  readonly key: string | undefined;
  readonly isInUrl: boolean;
}

/** The key in one of the platform's three places. */
export function platformKeyOf({
  headers,
  url = "",
}: Pick<IncomingMessage, "headers" | "url">): PresentedKey {
  const query = queryKey(url);
  const key = presentedKey({
    authorization: headers.authorization,
    apiKeyHeader: headerText(headers["x-api-key"]),
    apiKeyQuery: query,
  });
  return { key, isInUrl: query !== undefined };
}

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
