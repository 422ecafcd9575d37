/** How many calls a second one hot account takes: hold, then settle with its record. */
import { randomUUIDv7 } from "node:crypto";
import { pathToFileURL } from "node:url";
import { Client } from "pg";
import type { CallRow } from "../src/billing/call-row.ts";
import { createLedger, type LedgerWriter } from "../src/billing/ledger-writer.ts";

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
export interface LedgerBenchResult {
  readonly concurrency: number;
  /** Calls (hold + settle + record) per second. */
  readonly callsPerSecond: number;
  /** Milliseconds of a whole call. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU microseconds of this process per call, the load generator included. */
  readonly cpuUsPerCall: number;
}

/** Measures one hot account. */
export async function benchLedger(options: LedgerBenchOptions): Promise<LedgerBenchResult[]> {
  const { url, concurrencies = [1, 16, 64, 256], durationMs = 3_000 } = options;
  const accountId = randomUUIDv7();
  await topUp(url, accountId);
  const ledger = createLedger({ url });
  const results: LedgerBenchResult[] = [];
  try {
    await run(ledger, { accountId, concurrency: 64, durationMs: durationMs / 3 });
    for (const concurrency of concurrencies) {
      results.push(await run(ledger, { accountId, concurrency, durationMs }));
    }
  } finally {
    await ledger.close();
  }
  return results;
}

async function run(
  ledger: LedgerWriter,
  options: { accountId: string; concurrency: number; durationMs: number },
): Promise<LedgerBenchResult> {
  const { accountId, concurrency, durationMs } = options;
  const latencies: number[] = [];
  const cpu = process.cpuUsage();
  const start = performance.now();
  const end = start + durationMs;
  const worker = async (): Promise<void> => {
    for (let now = performance.now(); now < end; ) {
      const id = randomUUIDv7();
      const verdict = await ledger.hold({ id, accountId, amountNanos: 2_000n });
      if (!verdict.admitted) throw new Error("the bench account is out of money");
      await ledger.settle({ id, accountId, costNanos: 1_000n, record: callRow(id, accountId) });
      latencies.push(-now + (now = performance.now()));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
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

async function topUp(url: string, accountId: string): Promise<void> {
  const client = new Client(url);
  await client.connect();
  await client.query("select ledger_book($1, 1::smallint, $2, $3, 'bench', null)", [
    accountId,
    randomUUIDv7(),
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
  };
}

/** Run alone: `node bench/ledger.ts` with `DATABASE_URL`, a migrated database. */
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const url = process.env["DATABASE_URL"];
  if (!url) throw new Error("set DATABASE_URL to a migrated database that may be filled with rows");
  for (const result of await benchLedger({ url })) {
    process.stdout.write(`${JSON.stringify(result)}\n`);
  }
}
