/**
 * Pages of lists, by keyset: a page begins after the last item of the page before, so that rows which
 * come or go meanwhile neither repeat items nor hide any, and page 1,000 costs what page 1 does. Offsets
 * do all of that wrong.
 */
import { pageSizeDefault, pageSizeMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "./errors.ts";

/** What every List request has; the contract refuses negative sizes. */
export interface PageRequest {
  /** The most items of the page. 0: the default; over the largest page: the largest. */
  readonly pageSize: number;
  /** The token that came with the page before; empty: the first page. */
  readonly pageToken: string;
}

/** A page to read. */
export interface Page {
  /** The most items to show, 1 to 1000. Read one more to learn whether there is a next page. */
  readonly limit: number;
  /** The sort key of the last item of the page before; `undefined`: begin at the start. */
  readonly after: string | undefined;
}

/** What a list differs in. */
export interface PageOptions {
  /** The page size where the request names none. Default {@link pageSizeDefault}. */
  readonly defaultSize?: number;
  /** Whether a text can be a sort key of this list: `isUuid` for most. Default: every text. */
  readonly isKey?: (text: string) => boolean;
}

/**
 * Reads the page members of a List request.
 *
 * @throws GatewayError INVALID_REQUEST for a token that this list never gave.
 */
export function readPage(request: PageRequest, options: PageOptions = {}): Page {
  const { pageSize, pageToken } = request;
  const size = pageSize === 0 ? (options.defaultSize ?? pageSizeDefault) : pageSize;
  const limit = Math.min(size, pageSizeMax);
  if (pageToken === "") return { limit, after: undefined };
  const after = decodeToken(pageToken);
  if (after === undefined || options.isKey?.(after) === false) throw badToken();
  return { limit, after };
}

/**
 * The token of the page after the item with this sort key. Opaque to callers: only its round trip
 * through {@link readPage} counts. `undefined` or "": no next page.
 */
export function nextPageToken(lastKey: string | undefined): string {
  return lastKey ? Buffer.from(`${mark}${lastKey}`).toString("base64url") : "";
}

/** Splits what was read for a page, one item more than its limit, into its items and the next token. */
export function cutPage<Item>(
  page: Page,
  read: readonly Item[],
  keyOf: (item: Item) => string,
): { readonly items: readonly Item[]; readonly nextPageToken: string } {
  if (read.length <= page.limit) return { items: read, nextPageToken: "" };
  const items = read.slice(0, page.limit);
  const last = items.at(-1);
  return { items, nextPageToken: nextPageToken(last && keyOf(last)) };
}

/** Tells our tokens from other texts, and this form from later ones. */
const mark = "1:";

/** Longer than any token of ours: sort keys are ids and model names. */
const tokenCharsMax = 1_000;

function decodeToken(token: string): string | undefined {
  if (token.length > tokenCharsMax) return undefined;
  const text = Buffer.from(token, "base64url").toString();
  const after = text.startsWith(mark) ? text.slice(mark.length) : "";
  // The decoder skips what it cannot read: only what encodes back to the token is one.
  return nextPageToken(after) === token ? after : undefined;
}

function badToken(): GatewayError {
  const text =
    "page_token is not one of this list: send next_page_token of the page before unchanged, or nothing for the first page";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "page_token" });
}
