/** Usage over time, in groups: the RPC of UsageService, and the sums that it reads. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  UsageGroup,
  UsageMetric,
  UsagePointSchema,
  UsageSeriesSchema,
  UsageTotalsSchema,
  type UsageSeries,
  type UsageTotals,
} from "../../../gen/uas/billing/v1/usage_pb.ts";
import {
  GetUsageSeriesResponseSchema,
  type UsageService,
} from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { isOperator as isOperatorCall } from "../../core/caller.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { money } from "../../core/money.ts";
import { withLossMapping, type Queryable } from "../../db/pool/queryable.ts";
import { parseScope } from "../scope.ts";
import { bucketStarts, parseTimeZone, hourMs } from "./buckets.ts";
import { limitOf, parseRange, summedUntilMs } from "./range.ts";
import { firstId } from "../../db/partition.ts";
import { Where } from "../../db/where.ts";
import type { RowOf } from "../../db/row.ts";
import type { UsageHourEntity } from "./entity.ts";

interface UsageServiceOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
  readonly clock: Pick<Clock, "now">;
}

/** The default and the largest number of groups with a series of their own. */
const groupLimits = { usual: 10, most: 100 };

/** Creates the implementation of `uas.billing.v1.UsageService`. */
export function createUsageService(options: UsageServiceOptions): ServiceImpl<typeof UsageService> {
  const pool = withLossMapping(options.pool);
  return {
    async getUsageSeries(request, context) {
      const accountId = parseScope(request.accountId, context);
      const nowMs = options.clock.now();
      const { fromMs, toMs } = parseRange(request, nowMs);
      const timeZone = parseTimeZone(request.timeZone);
      const { bucket, group, metric } = request;
      const isOperator = isOperatorCall(context);
      if (!isOperator && operatorGroups.has(group)) throw onlyForOperators();
      const startsMs = bucketStarts({ fromMs, toMs, bucket, timeZone });
      const rows = await queryUsage(pool, {
        accountId,
        model: request.model || undefined,
        keyId: request.keyId || undefined,
        fromMs,
        toMs: summedUntilMs(toMs, nowMs),
        startsMs,
        group,
        groupLimit: limitOf(request.groupLimit, groupLimits),
        metric,
        withLosses: isOperator,
      });
      return create(GetUsageSeriesResponseSchema, {
        bucketTimes: startsMs.map(timestampFromMs),
        ...usageSeries(rows, { isOperator, metric }),
        toTime: timestampFromMs(toMs),
      });
    },
  };
}

/** What tells apart what customers do not see. */
const operatorGroups: ReadonlySet<UsageGroup> = new Set([UsageGroup.VENDOR, UsageGroup.ACCOUNT]);

function onlyForOperators(): GatewayError {
  const text = "only operators group usage by vendor or account; group by model or key";
  return new GatewayError(ErrorCode.ACCESS_DENIED, text, { param: "group" });
}

/** How sums are shown. */
interface UsageView {
  /** Whether vendor costs are shown. */
  readonly isOperator: boolean;
  readonly metric: UsageMetric;
}

type Sums = Record<(typeof sumNames)[number], bigint>;

interface Group {
  readonly name: string | null;
  readonly sums: Sums;
  readonly message: UsageSeries;
}

/** One series for each group, the largest first and the rest last, and the totals. A chart by the hour has thousands of
 * rows: each is read once. */
function usageSeries(
  rows: readonly UsageRow[],
  { isOperator, metric }: UsageView,
): { readonly series: UsageSeries[]; readonly totals: UsageTotals } {
  const all = sumsOf();
  const groups = new Map<string | null, Group>();
  for (const row of rows) {
    const group = groups.get(row.group) ?? newGroup(row.group);
    groups.set(row.group, group);
    const sums = sumsOf(row);
    add(all, sums);
    add(group.sums, sums);
    const point = create(UsagePointSchema);
    point.bucket = row.bucket;
    point.totals = totalsOf(sums, isOperator);
    group.message.points.push(point);
  }
  const byRank = (a: Group, b: Group): number =>
    Number(a.name === null) - Number(b.name === null) ||
    Number(sizeOf(b.sums, metric) - sizeOf(a.sums, metric));
  const series = [...groups.values()].toSorted(byRank).map(({ message, sums }) => {
    message.totals = totalsOf(sums, isOperator);
    return message;
  });
  return { series, totals: totalsOf(all, isOperator) };
}

function newGroup(name: string | null): Group {
  const message = create(UsageSeriesSchema, { group: name ?? "", rest: name === null });
  return { name, sums: sumsOf(), message };
}

/** The sums of a row; zeros without one. */
function sumsOf(row?: UsageRow): Sums {
  const sums = {} as Sums;
  for (const name of sumNames) sums[name] = row === undefined ? 0n : BigInt(row[name]);
  return sums;
}

function add(to: Sums, more: Sums): void {
  for (const name of sumNames) to[name] += more[name];
}

function totalsOf(sums: Sums, isOperator: boolean): UsageTotals {
  const totals = create(UsageTotalsSchema);
  totals.callCount = sums.calls;
  totals.failedCallCount = sums.failed_calls;
  totals.inputTokens = sums.input_tokens;
  totals.cachedInputTokens = sums.cached_input_tokens;
  totals.cacheWriteTokens = sums.cache_write_tokens;
  totals.outputTokens = sums.output_tokens;
  totals.reasoningTokens = sums.reasoning_tokens;
  totals.imageCount = sums.images;
  totals.secondMicros = sums.second_micros;
  totals.cost = money(sums.cost);
  if (isOperator) addFinances(totals, sums);
  return totals;
}

function addFinances(totals: UsageTotals, { cost, vendor_cost, attempt_cost, loss }: Sums): void {
  totals.vendorCost = money(vendor_cost);
  totals.attemptCost = money(attempt_cost);
  totals.loss = money(loss);
  totals.margin = money(cost - vendor_cost - attempt_cost - loss);
}

function sizeOf(sums: Sums, metric: UsageMetric): bigint {
  if (metric === UsageMetric.CALLS) return sums.calls;
  if (metric === UsageMetric.FAILED_CALLS) return sums.failed_calls;
  return metric === UsageMetric.TOKENS ? sums.input_tokens + sums.output_tokens : sums.cost;
}

// Sums the usage of a range of time: whole hours from the hourly sums, the rest from the call log.

/** The usage to sum, and how to group it. */
interface UsageQuery {
  /** `undefined`: of all accounts. */
  readonly accountId: string | undefined;
  /** `undefined`: of all models. */
  readonly model: string | undefined;
  /** `undefined`: with all keys. */
  readonly keyId: string | undefined;
  /** Milliseconds since 1970: inclusive. */
  readonly fromMs: number;
  /** Milliseconds since 1970: exclusive. */
  readonly toMs: number;
  /** When each bucket begins, in milliseconds since 1970. */
  readonly startsMs: readonly number[];
  readonly group: UsageGroup;
  readonly groupLimit: number;
  readonly metric: UsageMetric;
  /** Whether losses and the costs of abandoned attempts are summed, for operators; else they are 0. */
  readonly withLosses: boolean;
}

/** The sums of one group in one bucket. Integers are decimal digits. `group`: null for the rest. */
type UsageRow = RowOf<typeof UsageHourEntity, (typeof hourNames)[number]> & {
  readonly loss: string;
  readonly attempt_cost: string;
  readonly bucket: number;
  readonly group: string | null;
};

/** SQL condition of a failed call, as CallOutcome of the contract defines it. */
export const isFailed = "ending not in (1, 5, 10)";

/** The columns that hourly sums have. */
const hourNames = [
  "calls",
  "failed_calls",
  "input_tokens",
  "cached_input_tokens",
  "cache_write_tokens",
  "output_tokens",
  "reasoning_tokens",
  "images",
  "second_micros",
  "cost",
  "vendor_cost",
] as const;

/** The columns that are summed. */
const sumNames = [...hourNames, "loss", "attempt_cost"] as const;

/** The columns of an hourly sum, computed from one call. */
const ofCall = `account_id, uuid_hour(id) as hour, key_id, model, vendor, 1 as calls, (${isFailed})::int as failed_calls,
  input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
  coalesce(images, 0) as images, coalesce(second_micros, 0) as second_micros, cost,
  coalesce(vendor_cost, 0) as vendor_cost, 0 as loss, 0 as attempt_cost`;

/** Zeros for what no loss has. */
const noUsage = hourNames.map((name) => `0 as ${name}`).join(", ");

const groupColumns: Readonly<Record<UsageGroup, string>> = {
  [UsageGroup.UNSPECIFIED]: "''",
  [UsageGroup.NONE]: "''",
  [UsageGroup.MODEL]: "model",
  [UsageGroup.KEY]: "key_id",
  [UsageGroup.VENDOR]: "vendor",
  [UsageGroup.ACCOUNT]: "account_id::text",
};

const metricTerms: Readonly<Record<UsageMetric, string>> = {
  [UsageMetric.UNSPECIFIED]: "sum(cost)",
  [UsageMetric.COST]: "sum(cost)",
  [UsageMetric.CALLS]: "sum(calls)",
  [UsageMetric.FAILED_CALLS]: "sum(failed_calls)",
  [UsageMetric.TOKENS]: "sum(input_tokens + output_tokens)",
};

/** Reads the sums. Buckets without calls have no row. */
export async function queryUsage(pool: Queryable, query: UsageQuery): Promise<UsageRow[]> {
  const where = new Where();
  const { group, groupLimit, metric, startsMs } = query;
  const sums = sumNames.map((name) => `sum(${name})::bigint as ${name}`).join(", ");
  const counted = countedSql(query, where);
  const starts = where.value(startsMs.map((ms) => new Date(ms)));
  const bucket = `greatest(width_bucket(hour, ${starts}::timestamptz[]) - 1, 0)`;
  // By hour first: there are few hours, and the bucket is computed once for each.
  const hours = `select hour, ${groupColumns[group]} as name, ${sums} from (${counted}) c group by 1, 2`;
  const buckets = `select ${bucket} as bucket, name, ${sums} from (${hours}) h group by 1, 2`;
  const text = isGrouped(group)
    ? `with summed as materialized (${buckets}), largest as (
         select name from summed group by name
           order by ${metricTerms[metric]} desc, name limit ${where.value(groupLimit)}
       )
       select bucket, l.name as "group", ${sums}
         from summed s left join largest l on l.name = s.name group by 1, 2 order by 1`
    : `select bucket, name as "group", ${sumNames.join(", ")} from (${buckets}) s order by 1`;
  return (await pool.query<UsageRow>(text, where.values)).rows;
}

function isGrouped(group: UsageGroup): boolean {
  return group !== UsageGroup.UNSPECIFIED && group !== UsageGroup.NONE;
}

/** SQL of the hours that lie wholly within the range, and of the calls in the partial hours at its ends. */
function countedSql(query: UsageQuery, where: Where): string {
  const { accountId, model, keyId, fromMs, toMs, withLosses } = query;
  const firstMs = Math.min(Math.ceil(fromMs / hourMs) * hourMs, toMs);
  const lastMs = Math.max(Math.floor(toMs / hourMs) * hourMs, firstMs);
  const own = where
    .and("account_id = ?", accountId)
    .and("model = ?", model)
    .and("key_id = ?", keyId).text;
  const parts = [
    [fromMs, firstMs],
    [lastMs, toMs],
  ] as const;
  const hours =
    `select account_id, hour, key_id, model, vendor, ${hourNames.join(", ")}, 0 as loss, ` +
    `0 as attempt_cost from usage_hour where ${own} and calls > 0 ` +
    `and hour >= ${where.value(new Date(firstMs))} and hour < ${where.value(new Date(lastMs))}`;
  const calls = parts
    .filter(([startMs, endMs]) => startMs < endMs)
    .map(([startMs, endMs]) => {
      const [low, high] = [startMs, endMs].map((ms) => where.value(firstId(new Date(ms))));
      return `select ${ofCall} from call where ${own} and id >= ${low} and id < ${high}`;
    });
  const losses = withLosses ? lossesSql(query, own, where) : [];
  return [hours, ...calls, ...losses].join(" union all ");
}

/**
 * SQL of what few calls have, found by indexes of their own: losses in the ledger (of a call that was not kept, the account
 * is known only), and costs of abandoned attempts.
 */
function lossesSql({ fromMs, toMs }: UsageQuery, own: string, where: Where): string[] {
  const [low, high] = [fromMs, toMs].map((ms) => where.value(firstId(new Date(ms))));
  const names = "account_id, hour, key_id, model, vendor";
  const lost = `select ${names}, ${noUsage}, loss, 0 as attempt_cost from (
       select e.account_id, uuid_hour(coalesce(e.call_id, e.txn_id)) as hour,
           coalesce(c.key_id, '') as key_id, coalesce(c.model, '') as model,
           coalesce(c.vendor, '') as vendor, -e.amount as loss
         from (
           select id as call_id, null::uuid as txn_id, account_id, paid - cost as amount from ledger_charge
             where paid < cost and id >= ${low} and id < ${high}
           union all
           select call_id, txn_id, account_id, amount from ledger_side
             where account = 6 and kind in (2, 6)
               and coalesce(call_id, txn_id) >= ${low} and coalesce(call_id, txn_id) < ${high}
         ) e left join call c on c.id = coalesce(e.call_id, e.txn_id)
     ) l where ${own}`;
  const attempts = `select ${names}, ${noUsage}, 0 as loss, attempt_cost from (
       select account_id, uuid_hour(id) as hour, key_id, model, a.vendor, a.vendor_cost as attempt_cost
         from call cross join lateral jsonb_to_recordset(attempts) as a(vendor text, vendor_cost bigint)
         where attempts is not null and a.vendor_cost > 0 and id >= ${low} and id < ${high}
     ) a where ${own}`;
  return [lost, attempts];
}
