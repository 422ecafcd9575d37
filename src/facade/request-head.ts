/** Reads the head of a request. */
import type { IncomingMessage } from "node:http";
import { presentedKey } from "../core/caller.ts";
import { emptyBody } from "./errors.ts";
import type { RestRoute } from "./route-table.ts";

/** A header, which may have been sent several times, as one text. */
export function headerText(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join(", ") : header;
}

/** The value of the query parameter `api-key`, or of another one. */
export function queryKey(url: string, name = "api-key"): string | undefined {
  const at = url.indexOf("?");
  if (at < 0) return undefined;
  return new URLSearchParams(url.slice(at + 1)).get(name) ?? undefined;
}

/** The query to forward, without the key. */
function passedQuery(url: string): string {
  const at = url.indexOf("?");
  if (at < 0) return "";
  const pairs = url.slice(at + 1).split("&");
  return pairs.filter((pair) => !new URLSearchParams(pair).has("api-key")).join("&");
}

/** A key, and whether it was in the URL. */
export interface PresentedKey {
  /** `undefined` where none was sent. */
  readonly key: string | undefined;
  readonly isInUrl: boolean;
}

/** Reads the key from the platform's three places. */
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

type Head = Pick<IncomingMessage, "headers" | "url">;

/**
 * Reads the fields of an RPC with a body in a wire style.
 *
 * @param forwarded the headers to forward, by lower-case name
 * @param isForm whether the body is read later, as a form. Default false
 * @throws GatewayError INVALID_REQUEST where the body is missing
 */
export function readWireRequest(
  { headers: sent, url = "" }: Head,
  body: unknown,
  {
    route,
    forwarded,
    isForm = false,
  }: {
    readonly route: RestRoute;
    readonly forwarded: ReadonlySet<string>;
    readonly isForm?: boolean;
  },
) {
  if (!Buffer.isBuffer(body) || (body.length === 0 && !isForm)) throw emptyBody();
  const headers: Record<string, string> = {};
  for (const name of forwarded) {
    const value = sent[name];
    if (typeof value === "string") headers[name] = value;
  }
  const { dialect } = route;
  const { path, alwaysStream, platformAliases } = route.route;
  return { dialect, path, query: passedQuery(url), headers, body, alwaysStream, platformAliases };
}
