/**
 * Sums the usage of a range of time: whole hours from the hourly sums, the rest from the call log.
 */
import { UsageGroup, UsageMetric } from "../../../gen/uas/billing/v1/usage_pb.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { hourMs } from "./buckets.ts";
import { firstId } from "../../db/partition.ts";
import { Where } from "../../db/where.ts";
import type { RowOf } from "../../db/row.ts";
import type { UsageHourEntity } from "./entity.ts";

/** The usage to sum, and how to group it. */
interface UsageQuery {
  /** Undefined means of all accounts. */
  readonly accountId: string | undefined;
  /** Undefined means of all models. */
  readonly model: string | undefined;
  /** Undefined with all keys. */
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
  /**
   * Whether losses and the costs of abandoned attempts are summed, for operators; else they are 0.
   */
  readonly withLosses: boolean;
  /**
   * The public models and vendors whose routes have a cost: there, a vendor cost of 0 is known.
   * Elsewhere an hour with charges and without vendor costs has unknown ones.
   */
  readonly costed: readonly { readonly model: string; readonly vendor: string }[];
}

/** The sums of one group in one bucket. Integers are decimal digits. `group`: null for the rest. */
export type UsageRow = RowOf<typeof UsageHourEntity, (typeof hourNames)[number]> & {
  readonly uncosted: string;
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
export const sumNames = [...hourNames, "uncosted", "loss", "attempt_cost"] as const;

/** The columns of an hourly sum, computed from one call. */
const ofCall = `account_id, uuid_hour(id) as hour, key_id, model, vendor, 1 as calls, (${isFailed})::int as failed_calls,
  input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
  coalesce(images, 0) as images, coalesce(second_micros, 0) as second_micros, cost,
  coalesce(vendor_cost, 0) as vendor_cost,
  case when vendor_cost is null then cost else 0 end as uncosted, 0 as loss, 0 as attempt_cost`;

/** Zeros for what no loss has. */
const noUsage = [...hourNames, "uncosted"].map((name) => `0 as ${name}`).join(", ");

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

/**
 * SQL of the hours that lie wholly within the range, and of the calls in the partial hours at its
 * ends.
 */
function countedSql(query: UsageQuery, where: Where): string {
  const { accountId, model, keyId, fromMs, toMs, withLosses, costed } = query;
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
  const models = where.value(costed.map((route) => route.model));
  const vendors = where.value(costed.map((route) => route.vendor));
  const isUnknown = `cost > 0 and vendor_cost = 0 and (model, vendor) not in (
    select * from unnest(${models}::text[], ${vendors}::text[]))`;
  const hours =
    `select account_id, hour, key_id, model, vendor, ${hourNames.join(", ")}, ` +
    `case when ${isUnknown} then cost else 0 end as uncosted, 0 as loss, ` +
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
 * SQL of rare sums with separate indexes: losses in the ledger (of a call without a record, only
 * the account is known), and costs of abandoned attempts.
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
