/** How many calls a second one hot account takes: hold, then settle with its record. */
import { pathToFileURL } from "node:url";
import { Client, DatabaseError } from "pg";
import type { CallRow } from "../src/billing/calls/call-row.ts";
import { createLedger, type LedgerWriter } from "../src/billing/ledger/ledger-writer.ts";
import { newId } from "../src/core/uuid.ts";

/** What {@link benchLedger} needs. */
export interface LedgerBenchOptions {
  /** A migrated database that may be filled with rows. */
  readonly url: string;
  /** Calls in flight at once, one run each. Default 1, 16, 64, 256. */
  readonly concurrencies?: readonly number[];
  /** The length of each run in milliseconds. Default 3,000. */
  readonly durationMs?: number;
}

/** The figures of one run. */
export interface LedgerRun {
  readonly concurrency: number;
  /** Calls (hold + settle + record) per second. */
  readonly callsPerSecond: number;
  /** Milliseconds that the money adds to a call: its hold and its settlement. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU microseconds of this process per call, the load generator included. */
  readonly cpuUsPerCall: number;
}

/** What waiting for money takes while nothing else happens, in milliseconds; medians. */
export interface IdleLatency {
  /** A transaction that writes one row. */
  readonly commitMs: number;
  /** The hold before a vendor is asked. */
  readonly holdMs: number;
  /** The settlement at the end. */
  readonly settleMs: number;
}

/** The figures of a database. */
export interface LedgerBenchResult {
  readonly runs: readonly LedgerRun[];
  readonly idle: IdleLatency;
}

/** How much longer each run takes, for a start that is not counted: all calls come at once then, and would be
 * more than one of a hundred. */
const warmUpShare = 0.2;

/** Measures one hot account, then an idle one. */
export async function benchLedger(options: LedgerBenchOptions): Promise<LedgerBenchResult> {
  const { url, concurrencies = [1, 16, 64, 256], durationMs = 3_000 } = options;
  const accountId = newId();
  await topUp(url, accountId);
  await makeWalSegments(url);
  const ledger = createLedger({ url });
  const runs: LedgerRun[] = [];
  try {
    await run(ledger, { accountId, concurrency: 64, durationMs: durationMs / 3 });
    for (const concurrency of concurrencies) {
      runs.push(await run(ledger, { accountId, concurrency, durationMs }));
    }
    return { runs, idle: await runIdle(ledger, { url, accountId, durationMs }) };
  } finally {
    await ledger.close();
  }
}

/** Takes turns, so that whatever else the machine does meets all three. */
async function runIdle(
  ledger: LedgerWriter,
  { url, accountId, durationMs }: { url: string; accountId: string; durationMs: number },
): Promise<IdleLatency> {
  const client = new Client(url);
  await client.connect();
  const [commits, holds, settles]: [number[], number[], number[]] = [[], [], []];
  try {
    await client.query("create table if not exists bench_commit (n integer)");
    const commit = { name: "commit", text: "insert into bench_commit values (1)" };
    for (const end = performance.now() + durationMs; performance.now() < end; ) {
      const id = newId();
      const record = callRow(id, accountId);
      commits.push(await timed(() => client.query(commit)));
      holds.push(
        await timed(() => ledger.hold({ id, accountId, amountNanos: 2_000n, keyId: accountId })),
      );
      settles.push(await timed(() => ledger.settle({ id, accountId, costNanos: 1_000n, record })));
    }
  } finally {
    await client.end();
  }
  return { commitMs: middle(commits), holdMs: middle(holds), settleMs: middle(settles) };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}

async function run(
  ledger: LedgerWriter,
  options: { accountId: string; concurrency: number; durationMs: number },
): Promise<LedgerRun> {
  const { accountId, concurrency, durationMs } = options;
  const latencies: number[] = [];
  const began = performance.now();
  const start = began + durationMs * warmUpShare;
  const end = start + durationMs;
  let cpu = process.cpuUsage();
  const warm = setTimeout(() => {
    cpu = process.cpuUsage();
  }, start - began);
  const worker = async (): Promise<void> => {
    for (let now = performance.now(); now < end; ) {
      const id = newId();
      const verdict = await ledger.hold({ id, accountId, amountNanos: 2_000n, keyId: accountId });
      if (!verdict.admitted) throw new Error("the bench account is out of money");
      await ledger.settle({ id, accountId, costNanos: 1_000n, record: callRow(id, accountId) });
      const asked = now;
      now = performance.now();
      if (asked >= start) latencies.push(now - asked);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  clearTimeout(warm);
  const seconds = (performance.now() - start) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  latencies.sort((a, b) => a - b);
  const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0;
  return {
    concurrency,
    callsPerSecond: Math.round(latencies.length / seconds),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuUsPerCall: (user + system) / latencies.length,
  };
}

/** How many WAL segments are made ahead: of 16 MiB each, more than a bench writes. */
const walSegments = 24;

/**
 * Leaves the server with WAL segments to write into again, as one has that has been busy for some time. A fresh one makes each
 * of its first when it comes to it: 25 ms for whoever commits then, which is one call of forty with 256 in flight, so that
 * the 99th percentile was that of making files. Servers that do not let us are measured as they are.
 */
async function makeWalSegments(url: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    for (let made = 0; made < walSegments; made++) {
      await client.query("select pg_logical_emit_message(false, 'bench', '')");
      await client.query("select pg_switch_wal()");
    }
    await client.query("checkpoint");
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
  } finally {
    await client.end();
  }
}

async function topUp(url: string, accountId: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  await client.query("select ledger_book($1, 1::smallint, $2, $3, 'bench', null, null)", [
    accountId,
    newId(),
    "1000000000000000",
  ]);
  await client.end();
}

function callRow(id: string, accountId: string): CallRow {
  return {
    id,
    request_id: id,
    account_id: accountId,
    key_id: accountId,
    model: "gpt-5-mini",
    vendor: "openai",
    path: "/v1/chat/completions",
    stream: true,
    status: 200,
    error_code: "",
    ending: 1,
    usage_source: 1,
    input_tokens: 120,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    output_tokens: 64,
    reasoning_tokens: 0,
    cost: "1000",
    held: "2000",
    price_version: "0123456789abcdef",
    start_time: "2026-01-01T00:00:00.000Z",
    duration_ms: 900,
    first_byte_ms: 200,
    upstream_request_id: "req_0123456789",
    dropped: "",
    discount_bp: 0,
    charged: true,
    images: null,
    second_micros: null,
  };
}

/** Run alone: `node bench/ledger.ts` with `DATABASE_URL`, a migrated database. */
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const url = process.env["DATABASE_URL"];
  if (!url) throw new Error("set DATABASE_URL to a migrated database that may be filled with rows");
  process.stdout.write(`${JSON.stringify(await benchLedger({ url }), null, 2)}\n`);
}
