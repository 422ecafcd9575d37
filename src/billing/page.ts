/** Keyset pages: a token is a position, nothing else, so it cannot carry anybody's rights. */
import { pageSizeDefault, pageSizeMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";

/** What a list request asks for. */
export interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** A page to read: one row more than `size` shows whether there is a next one. */
export interface Page {
  readonly size: number;
  /** The last id of the page before; `undefined`: the first page. Newest first: all ids are below it. */
  readonly before: string | undefined;
}

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/**
 * Reads a page request.
 *
 * @throws GatewayError INVALID_REQUEST for a negative size or a token that no list has given.
 */
export function parsePage({ pageSize, pageToken }: PageRequest): Page {
  if (pageSize < 0) throw invalid("page_size", "page_size must not be negative");
  const size = pageSize === 0 ? pageSizeDefault : Math.min(pageSize, pageSizeMax);
  if (pageToken === "") return { size, before: undefined };
  const before = Buffer.from(pageToken, "base64url").toString("latin1");
  if (!uuid.test(before)) {
    throw invalid("page_token", "page_token must be the next_page_token of the page before");
  }
  return { size, before };
}

/** Cuts the extra row off and makes the token of the next page: empty on the last. */
export function cutPage<T>(
  rows: readonly T[],
  { size }: Page,
  id: (row: T) => string,
): { rows: readonly T[]; nextPageToken: string } {
  const shown = rows.slice(0, size);
  const last = shown.at(-1);
  const hasMore = rows.length > size && last !== undefined;
  const nextPageToken = hasMore ? Buffer.from(id(last), "latin1").toString("base64url") : "";
  return { rows: shown, nextPageToken };
}

/**
 * Checks an id.
 *
 * @throws GatewayError INVALID_REQUEST where it is no UUID.
 */
export function parseId(member: string, id: string): string {
  if (!uuid.test(id)) throw invalid(member, `${member} must be a UUID`);
  return id.toLowerCase();
}

/** A request that is wrong in one member; the message says what would be right. */
export function invalid(param: string, message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param });
}
