/**
 * Reads pages of the call log. The rows that one page may scan are bounded, however few calls
 * match.
 */
import { logWindowRows, logWindowRowsMax, logWindowsMs } from "../../core/limits.ts";
import { firstId } from "../../db/partition.ts";
import { nextPageToken, type Page } from "../../core/pagination.ts";
import { maxUuid } from "../../core/uuid.ts";
import { hourMs } from "./buckets.ts";
import type { StoredCallRow } from "../message.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { Where } from "../../db/where.ts";
import { type CallQuery, addOtherConditions, addIndexedConditions } from "./filter.ts";

/** Growth factor of each window over the previous one. */
const windowGrowth = 4;

/** A page of calls, newest first. */
interface CallPage {
  readonly calls: readonly StoredCallRow[];
  /** Empty if this is the last. */
  readonly nextPageToken: string;
}

/**
 * Reads a page. Windows grow: common calls are found in a small window, rare ones in few windows.
 *
 * @param windowRows how many calls the first window scans
 */
export async function readCalls(
  pool: Queryable,
  query: CallQuery,
  page: Page,
  windowRows: number = logWindowRows,
): Promise<CallPage> {
  const endMs = performance.now() + logWindowsMs;
  const ids: string[] = [];
  let after: string | undefined = page.after ?? maxUuid;
  for (let rows = windowRows; ; rows = Math.min(rows * windowGrowth, logWindowRowsMax)) {
    const start: Start | undefined = await skipHours(pool, query, after);
    ({ after } = start ?? { after: undefined });
    if (start === undefined || after === undefined) break;
    const floor = higher(await findFloor(pool, query, { after, rows }), start.floor);
    const limit = page.limit + 1 - ids.length;
    ids.push(...(await findIds(pool, query, { after, floor, limit })));
    after = floor;
    if (after === undefined || ids.length > page.limit || performance.now() >= endMs) break;
  }
  const calls = await readRows(pool, ids.slice(0, page.limit));
  const last = ids.length > page.limit ? calls.at(-1)?.id : after;
  return { calls, nextPageToken: nextPageToken(last) };
}

/** Where the next window starts. */
interface Start {
  /** Below this id. */
  readonly after: string;
  /**
   * Not below this id: if hours were skipped, calls are few, and one hour is enough for a window.
   */
  readonly floor: string | undefined;
}

/**
 * Skips hours without a call of an account's model or key, by the hourly sums. Undefined if there
 * are no more calls.
 */
async function skipHours(
  pool: Queryable,
  query: CallQuery,
  after: string,
): Promise<Start | undefined> {
  const { accountId, model, keyId, fromMs, toMs = Infinity } = query;
  const isCoveredBySums = accountId !== undefined && (model !== undefined || keyId !== undefined);
  if (!isCoveredBySums) return { after, floor: undefined };
  const where = new Where()
    .and("account_id = ?", accountId)
    .and("model = ?", model)
    .and("key_id = ?", keyId)
    .and("hour < ?", toMs === Infinity ? undefined : new Date(toMs))
    .and("hour <= ?", after === maxUuid ? undefined : new Date(timeOf(after)))
    .and("hour > ?", fromMs === undefined ? undefined : new Date(fromMs - hourMs));
  const text = `select hour from usage_hour where ${where.text} and calls > 0 order by hour desc limit 1`;
  const [row] = (await pool.query<{ hour: Date }>(text, where.values)).rows;
  if (row === undefined) return undefined;
  const end = firstId(new Date(row.hour.getTime() + hourMs));
  return end < after ? { after: end, floor: firstId(row.hour) } : { after, floor: undefined };
}

function higher(a: string | undefined, b: string | undefined): string | undefined {
  return a === undefined || (b !== undefined && b > a) ? b : a;
}

/** The moment of a UUIDv7, in milliseconds since 1970. */
export function timeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The rows of some calls, newest first. */
async function readRows(
  pool: Queryable,
  ids: readonly string[],
): Promise<readonly StoredCallRow[]> {
  if (ids.length === 0) return [];
  const text = "select * from call where id = any($1) order by id desc";
  return (await pool.query<StoredCallRow>(text, [ids])).rows;
}

/**
 * The lowest id of the next `rows` calls, where a window ends; undefined if fewer are left, or an
 * index serves every condition. Read before the window, so that calls that are written meanwhile
 * shift nothing.
 */
export async function findFloor(
  pool: Queryable,
  query: CallQuery,
  { after, rows }: { readonly after: string | undefined; readonly rows: number },
): Promise<string | undefined> {
  if (!addOtherConditions(new Where(), query)) return undefined;
  const where = new Where();
  addIndexedConditions(where, query);
  where.and("id < ?", after);
  const text = `select id from call where ${where.text} order by id desc offset ${rows - 1} limit 1`;
  return (await pool.query<{ id: string }>(text, where.values)).rows[0]?.id;
}

async function findIds(
  pool: Queryable,
  query: CallQuery,
  { after, floor, limit }: { after: string; floor: string | undefined; limit: number },
): Promise<string[]> {
  const where = new Where();
  addIndexedConditions(where, query);
  addOtherConditions(where, query);
  where.and("id < ?", after).and("id >= ?", floor);
  const text = `select id from call where ${where.text} order by id desc limit ${where.value(limit)}`;
  const { rows } = await pool.query<{ id: string }>(text, where.values);
  return rows.map(({ id }) => id);
}
