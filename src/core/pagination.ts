/**
 * Keyset pagination. A page begins after the last item of the previous page. So rows that are added
 * or deleted meanwhile neither repeat nor hide items, and page 1,000 costs as much as page 1.
 * Offsets fail at all of these.
 */
import { pageSizeDefault, pageSizeMax } from "./limits.ts";
import { ErrorCode, GatewayError } from "./errors.ts";

/** Members that every List request has; the contract refuses negative sizes. */
export interface PageRequest {
  /** Largest number of items. 0 means the default; larger than the maximum means the maximum. */
  readonly pageSize: number;
  /** The token from the previous page; empty for the first page. */
  readonly pageToken: string;
}

/** A page to read. */
export interface Page {
  /** Number of items to show, 1 to 1000. Read one more to find out whether there is a next page. */
  readonly limit: number;
  /** The sort key of the previous page's last item; `undefined` for the first page. */
  readonly after: string | undefined;
}

/** Differences between lists. */
export interface PageOptions {
  /** Page size if the request sets none. Default {@link pageSizeDefault}. */
  readonly defaultSize?: number;
  /**
   * Whether a text can be a sort key of this list: `isUuid` for most. Every text can by default.
   */
  readonly isKey?: (text: string) => boolean;
}

/**
 * Reads the page members of a List request.
 *
 * @throws GatewayError INVALID_REQUEST for a token that this list never issued
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
 * The token of the page after the item with this sort key. Opaque to callers; {@link readPage}
 * reads it. `undefined` or "" means there is no next page.
 */
export function nextPageToken(lastKey: string | undefined): string {
  return lastKey ? Buffer.from(`${mark}${lastKey}`).toString("base64url") : "";
}

/** Splits the items read for a page (one more than its limit) into the page and the next token. */
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

/** Marks the gateway's tokens, with the version of their format. */
const mark = "1:";

/** Longer than any issued token: sort keys are ids and model names. */
const tokenCharsMax = 1_000;

function decodeToken(token: string): string | undefined {
  if (token.length > tokenCharsMax) return undefined;
  const text = Buffer.from(token, "base64url").toString();
  const after = text.startsWith(mark) ? text.slice(mark.length) : "";
  // The base64 decoder skips invalid characters, so a token counts only if it encodes back to
  // itself.
  return nextPageToken(after) === token ? after : undefined;
}

function badToken(): GatewayError {
  const text =
    "page_token does not belong to this list: send next_page_token of the previous page, or nothing for the first page";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "page_token" });
}
