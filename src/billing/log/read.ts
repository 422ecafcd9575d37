/** Reads pages of the call log: so much is looked through, and no more, however few calls fit. */
import { logWindowRows, logWindowsMs } from "../../config/log-limits.ts";
import { nextPageToken, type Page } from "../../page-token.ts";
import type { StoredCallRow } from "../message.ts";
import type { Queryable } from "../queryable.ts";
import { Where } from "../where.ts";
import { addFound, addSought, type CallQuery } from "./filter.ts";

/** A page of calls, newest first. */
export interface CallPage {
  readonly calls: readonly StoredCallRow[];
  /** Empty: this is the last. */
  readonly nextPageToken: string;
}

/** Reads a page. @param windowRows how many calls are looked through at once */
export async function readCalls(
  pool: Queryable,
  query: CallQuery,
  page: Page,
  windowRows: number = logWindowRows,
): Promise<CallPage> {
  const endMs = performance.now() + logWindowsMs;
  const ids: string[] = [];
  let { after } = page;
  do {
    const floor = await findFloor(pool, query, { after, rows: windowRows });
    const limit = page.limit + 1 - ids.length;
    ids.push(...(await findIds(pool, query, { after, floor, limit })));
    after = floor;
  } while (after !== undefined && ids.length <= page.limit && performance.now() < endMs);
  const calls = await readRows(pool, ids.slice(0, page.limit));
  const last = ids.length > page.limit ? calls.at(-1)?.id : after;
  return { calls, nextPageToken: nextPageToken(last) };
}

/** The rows of some calls, newest first. */
export async function readRows(
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
  { after, floor, limit }: { after: string | undefined; floor: string | undefined; limit: number },
): Promise<string[]> {
  const where = new Where();
  addFound(where, query);
  addSought(where, query);
  where.and("id < ?", after).and("id >= ?", floor);
  const text = `select id from call where ${where.text} order by id desc limit ${where.value(limit)}`;
  const { rows } = await pool.query<{ id: string }>(text, where.values);
  return rows.map(({ id }) => id);
}
