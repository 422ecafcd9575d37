/**
 * Budgets: what a key or an account may spend per day, week or month. The ledger enforces them
 * (ledger_budget_*), by the database's clock; here they are checked, set and read. SQL: setting one
 * is a function of the ledger.
 */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Budget, BudgetPeriod, BudgetSchema } from "../../gen/uas/type/v1/budget_pb.ts";
import type { Budgets } from "../core/budgets.ts";
import { money } from "../core/money.ts";
import { invalid } from "../core/validation.ts";
import { type Queryable, withLossMapping } from "../db/pool/queryable.ts";
import type { RowOf } from "../db/row.ts";
import { parseTimeZone } from "./calls/buckets.ts";
import type { BudgetEntity } from "./entity.ts";

/**
 * A budget that no call has touched since its period ended still has the figures of that period.
 */
const readSql = `
  select b.owner_id, b.period, b.amount, b.time_zone,
      case when b.end_time > now() then b.spent else 0 end as spent,
      case when b.end_time > now() then b.end_time else p.end_time end as end_time
    from budget b cross join lateral ledger_budget_period(now(), b.period, b.time_zone) p
    where b.owner_id = any($1) order by b.owner_id, b.period`;

const setSql = "select ledger_budget_set(?, ?, ?::smallint[], ?::bigint[], ?::text[])";

type BudgetRow = RowOf<
  typeof BudgetEntity,
  "owner_id" | "period" | "amount" | "time_zone" | "spent" | "end_time"
>;

/** Creates the access of other rooms to budgets. */
export function createBudgets(pool: Queryable): Budgets {
  const database = withLossMapping(pool);
  return {
    async of(ownerIds) {
      const { rows } = await database.query<BudgetRow>(readSql, [ownerIds]);
      const found = new Map<string, Budget[]>();
      for (const row of rows) {
        found.set(row.owner_id, [...(found.get(row.owner_id) ?? []), budgetMessage(row)]);
      }
      return found;
    },

    check: checkBudgets,

    async set(em, { accountId, ownerId, budgets }) {
      const columns = [
        arrayOf(budgets, ({ period }) => String(period)),
        arrayOf(budgets, ({ amount }) => String(amount?.amountNanos ?? 0n)),
        arrayOf(budgets, ({ timeZone }) => timeZone),
      ];
      await em.execute(setSql, [accountId, ownerId, ...columns]).catch((error: unknown) => {
        throw isUnknownZone(error) ? wrongZone("budgets.time_zone") : error;
      });
    },
  };
}

/** An array as PostgreSQL reads it; none of the values needs quotes. */
function arrayOf<Value>(values: readonly Value[], write: (value: Value) => string): string {
  return `{${values.map(write).join(",")}}`;
}

/** PostgreSQL may have an older copy of the database of time zones than Node.js. */
function isUnknownZone(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code === "22023";
}

const known: readonly BudgetPeriod[] = [BudgetPeriod.DAY, BudgetPeriod.WEEK, BudgetPeriod.MONTH];

function checkBudgets(budgets: readonly Budget[]): readonly Budget[] {
  const periods = new Set<BudgetPeriod>();
  return budgets.map(({ period, amount, timeZone }, index) => {
    const at = `budgets[${index}]`;
    if (!known.includes(period)) {
      throw invalid(`${at}.period`, `${at}.period must be a day, a week or a month`);
    }
    if (periods.has(period)) {
      throw invalid(
        `${at}.period`,
        `${at}.period: there is already a budget for this period; send one per period`,
      );
    }
    periods.add(period);
    const amountNanos = amountOf(amount, at);
    const zone = zoneOf(timeZone, at);
    return create(BudgetSchema, { period, amount: money(amountNanos), timeZone: zone });
  });
}

function amountOf(amount: Budget["amount"], at: string): bigint {
  const { currencyCode = "", amountNanos = 0n } = amount ?? {};
  if (currencyCode !== "" && currencyCode !== "USD") {
    throw invalid(`${at}.amount`, `${at}.amount must be in USD`);
  }
  if (amountNanos > 0n) return amountNanos;
  throw invalid(
    `${at}.amount`,
    `${at}.amount must be more than zero; to stop a key, disable it; to remove the budget, leave it out`,
  );
}

function zoneOf(timeZone: string, at: string): string {
  try {
    return parseTimeZone(timeZone);
  } catch {
    throw wrongZone(`${at}.time_zone`);
  }
}

function wrongZone(member: string): Error {
  const text = `${member} must be a name of the IANA time zone database, for example Asia/Shanghai or UTC`;
  return invalid(member, text);
}

function budgetMessage(row: BudgetRow): Budget {
  return create(BudgetSchema, {
    period: row.period as BudgetPeriod,
    amount: money(BigInt(row.amount)),
    timeZone: row.time_zone,
    spent: money(BigInt(row.spent)),
    resetTime: timestampFromDate(row.end_time),
  });
}
