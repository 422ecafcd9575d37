/** The export of days of calls and of the ledger, and the removal of months after it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Auditor } from "../../../src/billing/audit/auditor.ts";
import { exportDays } from "../../../src/billing/export/export-days.ts";
import { hashOf } from "../../../src/billing/export/line-file.ts";
import { billingPartitions } from "../../../src/billing/jobs.ts";
import { removeOldMonths } from "../../../src/billing/old-months.ts";
import { newId } from "../../../src/core/uuid.ts";
import { ensurePartitions } from "../../../src/db/partition.ts";
import { createObjectStore } from "../../../src/result/object-store.ts";
import { createS3Objects } from "../../../src/result/s3-storage.ts";
import { startS3 } from "../../support/s3.ts";
import { callRow } from "./calls/call-row.ts";
import { type Billing, openBilling } from "./harness.ts";

let billing: Billing;
let auditor: Auditor;
let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "uas-export-"));
  billing = await openBilling();
  auditor = new Auditor(billing.pool);
  for (const now of [old, new Date()]) {
    await ensurePartitions(billing.pool, billingPartitions, { now, monthsAhead: 0 });
  }
});
afterEach(async () => {
  await billing.close();
  rmSync(folder, { recursive: true });
});

/** The middle of a month half a year ago. */
const thisMonth = new Date();
const old = new Date(Date.UTC(thisMonth.getUTCFullYear(), thisMonth.getUTCMonth() - 6, 15));
const day = old.toISOString().slice(0, 10);
const partition = `call_${day.slice(0, 7).replace("-", "_")}`;

async function call(accountId: string, date: Date, costNanos = 25n): Promise<string> {
  const hex = date.getTime().toString(16).padStart(12, "0");
  const id = `${hex.slice(0, 8)}-${hex.slice(8)}${newId().slice(13)}`;
  await billing.send({ accountId, holds: [{ id, amountNanos: 60n, keyId: newId() }] });
  const record = callRow(id, accountId, { vendor_cost: "7", start_time: date.toISOString() });
  await billing.apply({ accountId, settles: [{ id, costNanos, record }] });
  return id;
}

const options = (more: { readonly signal?: AbortSignal; readonly onStored?: () => void } = {}) => ({
  pool: billing.pool,
  store: createObjectStore({ kind: "local" }, folder),
  folder: join(folder, "incoming"),
  signal: new AbortController().signal,
  ...more,
});

interface Line {
  readonly [name: string]: string | number | null;
}

interface Manifest {
  readonly file: string;
  readonly rows: number;
  readonly sumNanos: string;
  readonly vendorCostNanos: string;
}

const read = (data: string, on: string): { manifest: Manifest; lines: readonly Line[] } => {
  const name = `exports/${data}/${on.slice(0, 4)}/${on.slice(5, 7)}/${on}.manifest.json`;
  const manifest = JSON.parse(readFileSync(join(folder, name), "utf8")) as Manifest;
  const text = gunzipSync(readFileSync(join(folder, manifest.file))).toString();
  const lines = text.split("\n").slice(0, -1);
  return { manifest, lines: lines.map((line) => JSON.parse(line) as Line) };
};

const isThere = async (): Promise<boolean> =>
  (await billing.count("pg_class", `relname = '${partition}'`)) === 1;

const remove = () => removeOldMonths({ auditor, callDays: 90, isExporting: true });

/** Audits, so that nothing but a missing export keeps the month. */
async function auditAll(): Promise<void> {
  expect(await auditor.run()).toMatchObject({ breaches: [] });
}

/** Removes the month; a table in use stays until the next time. */
const removeInTime = () =>
  vi.waitFor(
    async () => {
      await remove();
      expect(await isThere()).toBe(false);
    },
    { timeout: 30_000 },
  );

test("a month of calls is removed only after each of its days was exported, in order, with vendor cost and sums", async () => {
  const account = await billing.account(1_000n);
  const ids = [];
  for (let n = 0; n < 3; n++) ids.push(await call(account, new Date(old.getTime() + n)));
  await auditAll();
  await remove();
  expect(await isThere()).toBe(true);
  await exportDays(options());
  const { manifest, lines } = read("calls", day);
  expect(manifest).toMatchObject({ rows: 3, sumNanos: "75", vendorCostNanos: "21" });
  expect(lines.map(({ callId }) => callId)).toEqual(ids);
  expect(lines[0]).toMatchObject({ cost: "0.000000025", vendorCost: "0.000000007" });
  await removeInTime();
  expect(await auditor.runFull()).toMatchObject({ breaches: [] });
});

test("a call that was recorded after the export of its day keeps the month until the day was exported again", async () => {
  const account = await billing.account(1_000n);
  await call(account, old);
  await auditAll();
  await exportDays(options());
  const late = await call(account, new Date(old.getTime() + 1_000));
  await auditAll();
  await remove();
  expect(await isThere()).toBe(true);
  expect(await exportDays(options())).toBe(1);
  expect(read("calls", day).lines.map(({ callId }) => callId)).toContain(late);
  await removeInTime();
});

test("a process that dies between the storage of a file and its record loses nothing: its day is exported again", async () => {
  const account = await billing.account(1_000n);
  await call(account, old);
  await auditAll();
  const dies = (): void => {
    if (readdirSync(folder).includes("exports")) throw new Error("killed");
  };
  await expect(exportDays(options({ onStored: dies }))).rejects.toThrow("killed");
  await remove();
  expect(await isThere()).toBe(true);
  await exportDays(options());
  expect(read("calls", day).manifest.rows).toBe(1);
  await removeInTime();
});

test("a day is exported by one process at a time, and by another one if its lease has expired", async () => {
  const account = await billing.account(1_000n);
  await call(account, old);
  await exportDays(options());
  await billing.pool.query(
    `update export_day set ended_time = null, lease = $1, lease_until = now() + interval '1 hour' where day = '${day}'`,
    [newId()],
  );
  expect(await exportDays(options())).toBe(0);
  await billing.pool.query(
    `update export_day set lease_until = now() - interval '1 second' where day = '${day}'`,
  );
  expect(await exportDays(options())).toBe(1);
});

test("two exports at once, beside calls, export each day once", async () => {
  const account = await billing.account(100_000n);
  await call(account, old);
  const calls = async (): Promise<void> => {
    for (let n = 0; n < 50; n++) await call(account, new Date());
  };
  const [one, other] = await Promise.all([exportDays(options()), exportDays(options()), calls()]);
  const days = await billing.count("export_day", "ended_time is not null");
  expect(one + other).toBe(days);
  expect(read("calls", day).manifest.rows).toBe(1);
});

test("the days of the ledger have every audited entry once, and the sums of its checkpoints", async () => {
  const account = await billing.account(1_000n);
  await call(account, old);
  await auditAll();
  await call(account, new Date());
  await auditAll();
  // Audited on two days, and a third that has not ended.
  await billing.pool.query(
    "alter table ledger_checkpoint disable trigger user; update ledger_checkpoint set create_time = now() - (3 - n) * interval '1 day'; alter table ledger_checkpoint enable trigger user",
  );
  await exportDays(options());
  const { rows: days } = await billing.pool.query<{ day: string }>(
    "select day::text from export_day where data = 'ledger' order by day",
  );
  expect(days).toHaveLength(2);
  const lines = days.flatMap((each) => read("ledger", each.day).lines);
  const { rows: entries } = await billing.pool.query<{ txn_id: string; account: number }>(
    "select txn_id, account from ledger_entry order by seq, txn_id, account",
  );
  expect(lines.map((line) => [line.transactionId, line.ledgerAccount])).toEqual(
    entries.map((entry) => [entry.txn_id, entry.account]),
  );
  const sums = days.map((each) => BigInt(read("ledger", each.day).manifest.sumNanos));
  const { available } = await billing.balance(account);
  expect(sums.reduce((a, b) => a + b)).toBe(available);
});

test("a file that the store damages is not recorded, and keeps the month", async () => {
  const account = await billing.account(1_000n);
  await call(account, old);
  await auditAll();
  const store = createObjectStore({ kind: "local" }, folder);
  const damaging = { ...store, open: () => store.open("missing") };
  await expect(exportDays({ ...options(), store: damaging })).rejects.toThrow("was not stored");
  await remove();
  expect(await isThere()).toBe(true);
});

test("a day is exported to a bucket, beside the files of results", async () => {
  const account = await billing.account(1_000n);
  await call(account, old);
  await auditAll();
  const s3 = await startS3();
  const store = createS3Objects(s3.config);
  onTestFinished(async () => {
    store.close();
    await s3.close();
  });
  await exportDays({ ...options(), store });
  const { rows } = await billing.pool.query<{ file: string; sha256: string }>(
    "select file, sha256 from export_day where file is not null",
  );
  const [{ file, sha256 } = { file: "", sha256: "" }] = rows;
  expect(rows).toHaveLength(1);
  expect(file).toMatch(/^exports\/calls\//);
  const stored = await store.open(file);
  expect(stored && (await hashOf(stored))).toBe(sha256);
  await removeInTime();
});
