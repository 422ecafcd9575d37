/** Reads pages of the call log: so much is looked through, and no more, however few calls fit. */
import { logWindowRows, logWindowRowsMax, logWindowsMs } from "../../config/limits.ts";
import { firstId } from "../../db/partition.ts";
import { nextPageToken, type Page } from "../../core/pagination.ts";
import { hourMs } from "./buckets.ts";
import type { StoredCallRow } from "../message.ts";
import type { Queryable } from "../../db/queryable.ts";
import { Where } from "../../db/where.ts";
import { addFound, addSought, type CallQuery } from "./filter.ts";

/** How much larger each window is than the one before. */
const windowGrowth = 4;

/** A page of calls, newest first. */
export interface CallPage {
  readonly calls: readonly StoredCallRow[];
  /** Empty: this is the last. */
  readonly nextPageToken: string;
}

/**
 * Reads a page. Windows grow: what is common is found in a small one, what is rare in few.
 *
 * @param windowRows how many calls are looked through at first
 */
export async function readCalls(
  pool: Queryable,
  query: CallQuery,
  page: Page,
  windowRows: number = logWindowRows,
): Promise<CallPage> {
  const endMs = performance.now() + logWindowsMs;
  const ids: string[] = [];
  let after: string | undefined = page.after ?? topId;
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

/** Every id is below it: the position before the first page. */
const topId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** Where to look on. */
interface Start {
  /** Below this id. */
  readonly after: string;
  /** From this id on: where hours were passed, calls are few, and only one hour is looked through. */
  readonly floor: string | undefined;
}

/**
 * Where the calls of an account's model or key begin, from a position on: the hourly sums know the hours that have
 * none. `undefined`: there are no more.
 */
async function skipHours(
  pool: Queryable,
  query: CallQuery,
  after: string,
): Promise<Start | undefined> {
  const { accountId, model, keyId, fromMs, toMs = Infinity } = query;
  const isToldBySums = accountId !== undefined && (model !== undefined || keyId !== undefined);
  if (!isToldBySums) return { after, floor: undefined };
  const where = new Where()
    .and("account_id = ?", accountId)
    .and("model = ?", model)
    .and("key_id = ?", keyId)
    .and("hour < ?", toMs === Infinity ? undefined : new Date(toMs))
    .and("hour <= ?", after === topId ? undefined : new Date(timeOf(after)))
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
 * The id down to which the next `rows` calls can be looked through; `undefined`: all can, or every call that is
 * found fits. Told before looking, so that calls that come meanwhile move nothing.
 */
export async function findFloor(
  pool: Queryable,
  query: CallQuery,
  { after, rows }: { readonly after: string | undefined; readonly rows: number },
): Promise<string | undefined> {
  if (!addSought(new Where(), query)) return undefined;
  const where = new Where();
  addFound(where, query);
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
  addFound(where, query);
  addSought(where, query);
  where.and("id < ?", after).and("id >= ?", floor);
  const text = `select id from call where ${where.text} order by id desc limit ${where.value(limit)}`;
  const { rows } = await pool.query<{ id: string }>(text, where.values);
  return rows.map(({ id }) => id);
}
