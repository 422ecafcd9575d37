/**
 * Exports each day of call records and of ledger entries to a file, once, while other processes do
 * the same: a day is leased to one process. A day counts as exported after its file was stored and
 * read back.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { newId } from "../../core/uuid.ts";
import type { ObjectStore } from "../../core/object-store.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { callDays } from "./call-days.ts";
import {
  type DayTotals,
  type ExportedData,
  finalAge,
  type LeasedDay,
  leaseTime,
} from "./exported-data.ts";
import { ledgerDays } from "./ledger-days.ts";
import { hashOf, type LineFile, writeLines } from "./line-file.ts";

/** Dependencies of {@link exportDays}. */
export interface ExportOptions {
  readonly pool: Queryable;
  /** Stores the files, under names that begin with `exports/`. */
  readonly store: ObjectStore;
  /** The folder of temporary files. */
  readonly folder: string;
  /** Ends the export; the next run continues with the same day. */
  readonly signal: AbortSignal;
  /** Called after the file of a day was stored, before that is recorded; tests stop there. */
  readonly onStored?: () => void;
}

/** Interval between renewals: an upload can take long. */
const renewMs = 60_000;

/** Exports all days that are due, and returns their number. */
export async function exportDays(options: ExportOptions): Promise<number> {
  return (await exportAll(callDays, options)) + (await exportAll(ledgerDays, options));
}

async function exportAll<Day extends LeasedDay>(
  data: ExportedData<Day>,
  options: ExportOptions,
): Promise<number> {
  for (let count = 0; ; count++) {
    if (options.signal.aborted) return count;
    const day = await data.claim(options.pool, newId());
    if (day === undefined) return count;
    await exportLeased(data, day, options);
  }
}

async function exportLeased<Day extends LeasedDay>(
  data: ExportedData<Day>,
  day: Day,
  options: ExportOptions,
): Promise<void> {
  const { pool, signal } = options;
  const timer = setInterval(() => void renew(pool, day).catch(() => {}), renewMs);
  try {
    if (await data.isUnchanged?.(pool, day)) await endUnchanged(pool, day);
    else await exportDay(data, day, options);
  } catch (error) {
    await release(pool, day).catch(() => {});
    if (!signal.aborted) throw error;
  } finally {
    clearInterval(timer);
  }
}

async function exportDay<Day extends LeasedDay>(
  data: ExportedData<Day>,
  day: Day,
  options: ExportOptions,
): Promise<void> {
  const { pool, folder, signal } = options;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${day.lease}.jsonl.gz`);
  try {
    const totals: DayTotals = { rows: 0n, sum: 0n, vendorSum: 0n };
    const written = await writeLines(path, data.lines(pool, day, totals), signal);
    const more = data.manifest?.(day, totals) ?? {};
    const file =
      totals.rows === 0n
        ? undefined
        : await storeDay(options, { name: data.name, day, path, written, totals, more });
    options.onStored?.();
    await endDay(pool, day, { file, sha256: written.sha256, totals, lastSeq: data.lastSeq?.(day) });
  } finally {
    await rm(path, { force: true });
    await rm(`${path}.manifest`, { force: true });
  }
}

interface StoredDay {
  readonly name: string;
  readonly day: LeasedDay;
  readonly path: string;
  readonly written: LineFile;
  readonly totals: DayTotals;
  readonly more: Readonly<Record<string, unknown>>;
}

/**
 * Stores the file and then its manifest. The name has a part of the hash: a process that lost its
 * lease can overwrite nothing.
 */
async function storeDay(
  { store, signal }: ExportOptions,
  { name, day: { day }, path, written, totals, more }: StoredDay,
): Promise<string> {
  const { sha256, bytes } = written;
  const prefix = `exports/${name}/${day.slice(0, 4)}/${day.slice(5, 7)}/${day}`;
  const file = `${prefix}-${sha256.slice(0, 12)}.jsonl.gz`;
  await store.put(file, path, signal);
  const stored = await store.open(file);
  if (stored === undefined || (await hashOf(stored)) !== sha256) {
    throw new Error(`the exported file ${file} was not stored as it was sent`);
  }
  const { rows, sum, vendorSum } = totals;
  const amounts = { rows: Number(rows), sumNanos: `${sum}`, vendorCostNanos: `${vendorSum}` };
  const manifest = { data: name, day, file, sha256, bytes, ...amounts, ...more };
  await writeFile(`${path}.manifest`, `${JSON.stringify(manifest, null, 2)}\n`);
  await store.put(`${prefix}.manifest.json`, `${path}.manifest`, signal);
  return file;
}

async function renew(pool: Queryable, { lease }: LeasedDay): Promise<void> {
  const text = `update export_day set lease_until = clock_timestamp() + ${leaseTime} where lease = $1`;
  await pool.query(text, [lease]);
}

async function release(pool: Queryable, { lease }: LeasedDay): Promise<void> {
  await pool.query("update export_day set lease = null, lease_until = null where lease = $1", [
    lease,
  ]);
}

const isOldSql = `day < (clock_timestamp() at time zone 'utc' - ${finalAge})::date`;

async function endUnchanged(pool: Queryable, { lease }: LeasedDay): Promise<void> {
  await pool.query(
    `update export_day set lease = null, lease_until = null, is_final = ${isOldSql} where lease = $1`,
    [lease],
  );
}

interface EndedDay {
  readonly file: string | undefined;
  readonly sha256: string;
  readonly totals: DayTotals;
  readonly lastSeq: string | undefined;
}

/** Records the day, unless the lease was lost. */
async function endDay(
  pool: Queryable,
  { lease }: LeasedDay,
  { file, sha256, totals, lastSeq }: EndedDay,
): Promise<void> {
  const { rows, sum, vendorSum } = totals;
  await pool.query(
    `update export_day set lease = null, lease_until = null, ended_time = clock_timestamp(),
       is_final = ${isOldSql}, file = $2, sha256 = $3, rows = $4, sum = $5, vendor_sum = $6, last_seq = $7
     where lease = $1`,
    [lease, file ?? null, sha256, rows, sum, vendorSum, lastSeq ?? null],
  );
}
