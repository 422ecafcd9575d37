/** The call log, the series of usage and the ledger agree on any range. */
import { randomUUIDv7 } from "node:crypto";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  UsageBucket,
  UsageGroup,
  UsageMetric,
  type UsageTotals,
} from "../../../../gen/uas/billing/v1/usage_pb.ts";
import { UsageService } from "../../../../gen/uas/billing/v1/usage_service_pb.ts";
import { createUsageService } from "../../../../src/billing/calls/usage-service.ts";
import { type Caller, operator } from "../../../../src/core/caller.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { firstId } from "../../../../src/db/partition.ts";
import { anyCall, idAt, keyIds, makeCalls } from "./any-calls.ts";
import { callRow } from "./call-row.ts";
import { type Billing, openBilling } from "../harness.ts";
import { rpcsOf } from "../rpcs.ts";

let billing: Billing;
beforeAll(async () => void (billing = await openBilling()));
afterAll(() => billing.close());

const usageOf = (caller: Caller = operator) =>
  rpcsOf(
    UsageService,
    createUsageService({ clock: systemClock, pool: billing.pool, config: { models: new Map() } }),
    caller,
  );

/** Three weeks in which clocks change in Berlin (29 March) and New York (8 March). */
const from = Date.parse("2026-03-06T00:00Z");
const to = Date.parse("2026-03-31T00:00Z");
const moment = fc.oneof(
  fc.integer({ min: from, max: to }),
  fc.integer({ min: from / 3_600_000, max: to / 3_600_000 }).map((hour) => hour * 3_600_000),
);
const zones = ["UTC", "Asia/Shanghai", "Europe/Berlin", "America/New_York", "Pacific/Apia"];
const query = fc.record({
  range: fc.tuple(moment, moment).filter(([a, b]) => a !== b),
  timeZone: fc.constantFrom(...zones),
  bucket: fc.constantFrom(
    UsageBucket.HOUR,
    UsageBucket.DAY,
    UsageBucket.WEEK,
    UsageBucket.MONTH,
    UsageBucket.UNSPECIFIED,
  ),
  group: fc.constantFrom(UsageGroup.NONE, UsageGroup.MODEL, UsageGroup.KEY),
  groupLimit: fc.integer({ min: 1, max: 3 }),
  metric: fc.constantFrom(...Object.values(UsageMetric)),
  model: fc.constantFrom("", "", "fast-1", "vendor/third"),
  keyId: fc.constantFrom("", "", keyIds[1] ?? ""),
});

type Query = typeof query extends fc.Arbitrary<infer Value> ? Value : never;

interface LogRow {
  readonly id: string;
  readonly ending: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly images: number | null;
  readonly second_micros: string | null;
  readonly cost: string;
  readonly vendor_cost: string | null;
}

describe("the usage of an account", () => {
  test("R-MON-1, R-MON-6: the usage of an account is the same in log, series and ledger, for any range, bucket, zone and group", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyCall(from, to), { minLength: 1, maxLength: 15 }),
        fc.array(query, { minLength: 1, maxLength: 6 }),
        async (calls, queries) => {
          const accountId = await billing.account(4_000n);
          await makeCalls(billing, accountId, calls);
          for (const each of queries) await compare(accountId, each);
        },
      ),
      { numRuns: 100 },
    );
    await billing.expectClean();
    // It has been if it hurts.
    expect(await billing.count("call", "ending = 9")).toBeGreaterThan(10);
    expect(await billing.count("ledger_entry", "kind = 6")).toBeGreaterThan(10);
  });

  test("R-MON-6: two processes that count the same hour at once lose nothing", async () => {
    const accounts = [await billing.account(10_000n), await billing.account(10_000n)] as const;
    const startMs = Date.parse("2026-05-05T05:05Z");
    const ids = Array.from({ length: 60 }, () => idAt(startMs));
    const rows = (models: readonly string[]) =>
      ids.flatMap((_, index) =>
        accounts.map((account) =>
          callRow(idAt(startMs), account, { model: models[index % 2] ?? "", cost: "0" }),
        ),
      );
    const holds = ids.map((id) => ({ id, amountNanos: 1n }));
    const [account] = accounts;
    await billing.apply({ accountId: account, holds });
    const refuse = async (models: readonly string[]): Promise<void> => {
      for (let start = 0; start < 120; start += 20) {
        await billing.pool.query("select call_write($1::json)", [
          JSON.stringify(rows(models).slice(start, start + 20)),
        ]);
      }
    };
    const settle = async (): Promise<void> => {
      for (const id of ids) {
        await billing.send({ accountId: account, settles: [[id, 1n, { model: "b", held: "1" }]] });
      }
    };
    await Promise.all([refuse(["a", "b"]), refuse(["b", "a"]), settle()]);
    await billing.expectClean();
    expect(await billing.count("usage_hour", `account_id = '${account}'`)).toBe(2);
  });

  test("a day has the hours that it has in its zone, and a range its own edges", async () => {
    const accountId = await billing.account(10_000n);
    // The 29th of March has 23 hours in Berlin, from 23:00 UTC of the 28th.
    const times = ["2026-03-28T22:59:59.999Z", "2026-03-28T23:00Z", "2026-03-29T21:59Z"];
    const late = ["2026-03-29T22:00Z"];
    await makeCalls(
      billing,
      accountId,
      [...times, ...late].map((time) => ({
        startMs: Date.parse(time),
        way: "settled",
        cost: 1n,
        record: {},
      })),
    );
    const { bucketTimes, series, totals } = await usageOf().getUsageSeries({
      accountId,
      fromTime: timestampFromMs(Date.parse("2026-03-28T22:59:59Z")),
      toTime: timestampFromMs(Date.parse("2026-03-30T12:00Z")),
      timeZone: "Europe/Berlin",
    });
    expect(bucketTimes.map(timestampMs)).toEqual(
      ["2026-03-27T23:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z"].map((time) =>
        Date.parse(time),
      ),
    );
    const counts = series[0]?.points.map(({ bucket, totals: sums }) => [bucket, sums?.callCount]);
    expect(counts).toEqual([
      [0, 1n],
      [1, 2n],
      [2, 1n],
    ]);
    expect(totals?.cost?.amountNanos).toBe(4n);
  });

  test("R-AUTH-6: the usage of an account is visible to a session for its own account only, without vendor costs", async () => {
    const accountId = await billing.account(10_000n);
    const call = { startMs: from, way: "settled", cost: 5n, record: { vendor_cost: "3" } } as const;
    await makeCalls(billing, accountId, [call]);
    const range = { fromTime: timestampFromMs(from), toTime: timestampFromMs(to) };
    const own = usageOf({ kind: "session", accountId });
    const { totals } = await own.getUsageSeries({ accountId, ...range });
    expect(totals?.cost?.amountNanos).toBe(5n);
    expect(totals?.vendorCost).toBeUndefined();
    const all = await usageOf().getUsageSeries(range);
    expect(all.totals?.callCount).toBeGreaterThanOrEqual(1n);
    expect(all.totals?.vendorCost?.amountNanos).toBeGreaterThanOrEqual(3n);
    const other = { accountId: randomUUIDv7(), ...range };
    await expect(own.getUsageSeries(other)).rejects.toMatchObject({ status: 404 });
    await expect(own.getUsageSeries(range)).rejects.toMatchObject({ param: "account_id" });
  });

  test.each([
    ["from_time", { fromTime: undefined }],
    ["to_time", { toTime: timestampFromMs(from) }],
    ["bucket", { bucket: UsageBucket.HOUR, toTime: timestampFromMs(from + 1_001 * 3_600_000) }],
    ["bucket", { bucket: 99 as UsageBucket }],
    ["group", { group: 99 as UsageGroup }],
    ["metric", { metric: 99 as UsageMetric }],
    ["group_limit", { groupLimit: -1 }],
    ["time_zone", { timeZone: "Mars/Olympus" }],
    ["time_zone", { timeZone: "+08:00" }],
    ["model", { model: "a\0b" }],
  ])("a request that is wrong in %s is told so", async (param, wrong) => {
    const accountId = await billing.account();
    const range = { fromTime: timestampFromMs(from), toTime: timestampFromMs(to) };
    const answer = usageOf().getUsageSeries({ accountId, ...range, ...wrong });
    await expect(answer).rejects.toMatchObject({ status: 400, param });
  });
});

async function compare(accountId: string, asked: Query): Promise<void> {
  const [fromMs = 0, toMs = 0] = asked.range.toSorted((a, b) => a - b);
  const range = { fromTime: timestampFromMs(fromMs), toTime: timestampFromMs(toMs) };
  const answer = await usageOf().getUsageSeries({ ...asked, accountId, ...range });
  const log = await readLog(accountId, { ...asked, fromMs, toMs });
  expect(plain(answer.totals)).toEqual(sumsOf(log));
  expect(answer.totals?.cost?.amountNanos).toBe(await booked(log.map(({ id }) => id)));
  expect(plainSum(answer.series.map(({ totals }) => totals))).toEqual(sumsOf(log));
  const starts = answer.bucketTimes.map(timestampMs);
  expect(starts[0]).toBeLessThanOrEqual(fromMs);
  expect(starts.at(-1)).toBeLessThan(toMs);
  for (const [bucket, startMs] of starts.entries()) {
    const endMs = starts[bucket + 1] ?? Infinity;
    const own = log.filter(({ id }) => msOf(id) >= startMs && msOf(id) < endMs);
    const points = answer.series.flatMap((each) =>
      each.points.filter((point) => point.bucket === bucket).map(({ totals }) => totals),
    );
    expect(plainSum(points)).toEqual(sumsOf(own));
  }
  const groups = answer.series.filter(({ rest }) => !rest);
  expect(groups.length).toBeLessThanOrEqual(asked.groupLimit);
  expect(answer.series.length - groups.length).toBeLessThanOrEqual(1);
}

async function readLog(
  accountId: string,
  asked: { fromMs: number; toMs: number; model: string; keyId: string },
): Promise<LogRow[]> {
  const [low, high] = [asked.fromMs, asked.toMs].map((ms) => firstId(new Date(ms)));
  const { rows } = await billing.pool.query<LogRow>(
    `select * from call where account_id = $1 and id >= $2 and id < $3
       and ($4 = '' or model = $4) and ($5 = '' or key_id = $5)`,
    [accountId, low, high, asked.model, asked.keyId],
  );
  return rows;
}

/** Returns the ledger's charges of calls with their corrections. */
async function booked(ids: readonly string[]): Promise<bigint> {
  const { rows } = await billing.pool.query<{ sum: string }>(
    `select coalesce(sum(amount), 0) as sum from ledger_entry
       where account = 2 and kind in (2, 6) and coalesce(call_id, txn_id) = any($1)`,
    [ids],
  );
  return BigInt(rows[0]?.sum ?? -1);
}

function msOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

function sumsOf(rows: readonly LogRow[]): bigint[] {
  const sum = (of: (row: LogRow) => bigint | number | string | null | boolean): bigint =>
    rows.reduce((total, row) => total + BigInt(of(row) ?? 0), 0n);
  return [
    sum(() => 1),
    sum(({ ending }) => ![1, 5, 10].includes(ending)),
    sum((row) => row.input_tokens),
    sum((row) => row.output_tokens),
    sum((row) => row.images),
    sum((row) => row.second_micros),
    sum((row) => row.cost),
    sum((row) => row.vendor_cost),
  ];
}

function plain(totals: UsageTotals | undefined): bigint[] {
  if (totals === undefined) return Array.from({ length: 8 }, () => 0n);
  return [
    totals.callCount,
    totals.failedCallCount,
    totals.inputTokens,
    totals.outputTokens,
    totals.imageCount,
    totals.secondMicros,
    totals.cost?.amountNanos ?? -1n,
    totals.vendorCost?.amountNanos ?? -1n,
  ];
}

function plainSum(all: readonly (UsageTotals | undefined)[]): bigint[] {
  return all
    .map(plain)
    .reduce((a, b) => a.map((value, n) => value + (b[n] ?? 0n)), plain(undefined));
}
