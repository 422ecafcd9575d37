/**
 * Counts calls over time: from the hourly sums if these suffice, otherwise from the newest calls.
 */
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CallOutcome } from "../../../gen/uas/billing/v1/call_pb.ts";
import {
  type GetCallHistogramResponse,
  GetCallHistogramResponseSchema,
} from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { UsageGroup, UsageMetric } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { histogramRowsMax } from "../../core/limits.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { Where } from "../../db/where.ts";
import { hourMs } from "./buckets.ts";
import { findFloor, timeOf } from "./read.ts";
import { addIndexedConditions, addOtherConditions, type CallQuery } from "./filter.ts";
import { type Range, summedUntilMs } from "./range.ts";
import { isFailed, queryUsage } from "./usage-sums.ts";

/** The calls to count, and the bars to count them in. */
interface HistogramQuery extends Range {
  /** Its times are those of the range. */
  readonly calls: CallQuery;
  /** The most bars. */
  readonly bars: number;
  readonly nowMs: number;
}

/** The possible lengths of bars. */
const barLengthsMs = [1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800].map(
  (seconds) => seconds * 1_000,
);
const longestMs = 604_800_000;

interface BarCount {
  readonly bucket: number;
  readonly succeeded: bigint;
  readonly failed: bigint;
}

/** Counts succeeded and failed calls in bars of equal length. */
export async function countCalls(
  pool: Queryable,
  query: HistogramQuery,
): Promise<GetCallHistogramResponse> {
  const { fromMs, toMs } = query;
  const barMs = barLength(query);
  const firstMs = Math.floor(fromMs / barMs) * barMs;
  const startsMs = Array.from(
    { length: Math.ceil((toMs - firstMs) / barMs) },
    (_, index) => firstMs + index * barMs,
  );
  const isSummed = barMs >= hourMs && isCoveredBySums(query.calls);
  const counted = isSummed
    ? { bars: await sumBars(pool, query, startsMs), fromMs }
    : await countBars(pool, query, startsMs);
  return create(GetCallHistogramResponseSchema, {
    bars: counted.bars.map(({ bucket, succeeded, failed }) => ({
      time: timestampFromMs(startsMs[bucket] ?? 0),
      succeededCount: succeeded,
      failedCount: failed,
    })),
    barDuration: durationFromMs(barMs),
    countedFromTime: timestampFromMs(counted.fromMs),
    toTime: timestampFromMs(toMs),
  });
}

/**
 * The shortest bar length that needs no more than the wanted number of bars; multiples of a week
 * for longer ranges.
 */
function barLength({ fromMs, toMs, bars }: HistogramQuery): number {
  const fits = (barMs: number): boolean =>
    Math.ceil(toMs / barMs) - Math.floor(fromMs / barMs) <= bars;
  const found = barLengthsMs.find(fits);
  if (found !== undefined) return found;
  let weeks = 2;
  while (!fits(weeks * longestMs)) weeks++;
  return weeks * longestMs;
}

function isCoveredBySums({ requestId, others }: CallQuery): boolean {
  return requestId === undefined && others.length === 0;
}

async function sumBars(
  pool: Queryable,
  { calls, fromMs, toMs, nowMs }: HistogramQuery,
  startsMs: readonly number[],
): Promise<readonly BarCount[]> {
  const { accountId, model, keyId, outcome } = calls;
  const rows = await queryUsage(pool, {
    accountId,
    model,
    keyId,
    fromMs,
    toMs: summedUntilMs(toMs, nowMs),
    startsMs,
    group: UsageGroup.NONE,
    groupLimit: 1,
    metric: UsageMetric.CALLS,
    withLosses: false,
    costed: [],
  });
  return rows
    .map((row) => {
      const failed = outcome === CallOutcome.SUCCEEDED ? 0n : BigInt(row.failed_calls);
      const succeeded = BigInt(row.calls) - BigInt(row.failed_calls);
      const shown = outcome === CallOutcome.FAILED ? 0n : succeeded;
      return { bucket: row.bucket, succeeded: shown, failed };
    })
    .filter(({ succeeded, failed }) => succeeded + failed > 0n);
}

async function countBars(
  pool: Queryable,
  { calls, fromMs, toMs }: HistogramQuery,
  startsMs: readonly number[],
): Promise<{ readonly bars: readonly BarCount[]; readonly fromMs: number }> {
  const query = { ...calls, fromMs, toMs };
  const floor = await findFloor(pool, query, { after: undefined, rows: histogramRowsMax });
  const where = new Where();
  addIndexedConditions(where, query);
  addOtherConditions(where, query);
  where.and("id >= ?", floor);
  const starts = where.value(startsMs);
  const { rows } = await pool.query<{ bucket: number; failed: string; calls: string }>(
    `select width_bucket(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint,
         ${starts}::bigint[]) - 1 as bucket,
       count(*) filter (where ${isFailed}) as failed, count(*) as calls
     from call where ${where.text} group by 1 order by 1`,
    where.values,
  );
  const bars = rows.map((row) => ({
    bucket: row.bucket,
    failed: BigInt(row.failed),
    succeeded: BigInt(row.calls) - BigInt(row.failed),
  }));
  return { bars, fromMs: floor === undefined ? fromMs : timeOf(floor) };
}
