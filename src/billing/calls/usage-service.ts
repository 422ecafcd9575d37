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
import type { Config } from "../../config/config.ts";
import { isOperator as isOperatorCall } from "../../core/caller-rules.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { money } from "../../core/money.ts";
import { withLossMapping, type Queryable } from "../../db/pool/queryable.ts";
import { parseScope } from "../scope.ts";
import { bucketStarts, parseTimeZone } from "./buckets.ts";
import { limitOf, parseRange, summedUntilMs } from "./range.ts";
import { queryUsage, sumNames, type UsageRow } from "./usage-sums.ts";

interface UsageServiceOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
  readonly clock: Pick<Clock, "now">;
  readonly config: Pick<Config, "models">;
}

/** Default and maximum number of groups with a separate series. */
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
        costed: costedRoutes(options.config),
      });
      return create(GetUsageSeriesResponseSchema, {
        bucketTimes: startsMs.map(timestampFromMs),
        ...usageSeries(rows, { isOperator, metric }),
        toTime: timestampFromMs(toMs),
      });
    },
  };
}

/** The models and vendors whose routes have a cost. */
function costedRoutes({ models }: Pick<Config, "models">) {
  return [...models].flatMap(([model, { routes }]) =>
    routes.flatMap(({ vendor, costs }) => (costs === undefined ? [] : [{ model, vendor }])),
  );
}

/** Groupings that customers may not see. */
const operatorGroups: ReadonlySet<UsageGroup> = new Set([UsageGroup.VENDOR, UsageGroup.ACCOUNT]);

function onlyForOperators(): GatewayError {
  const text = "only operators group usage by vendor or account; group by model or key";
  return new GatewayError(ErrorCode.ACCESS_DENIED, text, { param: "group" });
}

/** View of the sums. */
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

/**
 * One series for each group, the largest first and the rest last, and the totals. A chart by the
 * hour has thousands of rows: each is read once.
 */
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

function addFinances(totals: UsageTotals, sums: Sums): void {
  const { cost, uncosted, vendor_cost, attempt_cost, loss } = sums;
  totals.uncosted = money(uncosted);
  totals.vendorCost = money(vendor_cost);
  totals.attemptCost = money(attempt_cost);
  totals.loss = money(loss);
  totals.margin = money(cost - uncosted - vendor_cost - attempt_cost - loss);
}

function sizeOf(sums: Sums, metric: UsageMetric): bigint {
  if (metric === UsageMetric.CALLS) return sums.calls;
  if (metric === UsageMetric.FAILED_CALLS) return sums.failed_calls;
  return metric === UsageMetric.TOKENS ? sums.input_tokens + sums.output_tokens : sums.cost;
}
