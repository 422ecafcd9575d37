/** What the head of a request says. */
import type { IncomingMessage } from "node:http";
import { presentedKey } from "../caller.ts";

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
export function passedQuery(url: string): string {
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
