/** The days of call records: what is exported of each, and whether an export is complete. */
import { escapeIdentifier } from "pg";
import { UsageSourceSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import { firstId, monthsOf, partitionName } from "../../db/partition.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { callLine, vendorCostOf } from "../calls/call-export.ts";
import type { StoredCallRow } from "../message.ts";
import { type ExportedData, finalAge, type LeasedDay, leaseTime } from "./exported-data.ts";

/** Rows of a query, and lines of a piece: writing them as JSON takes a few milliseconds. */
const pageRows = 1_000;

const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Leases a day. $1: the first day, $2: the lease. A day has ended a day ago, so that most of its
 * calls have ended too; old days are compared once more.
 */
const claimSql = `
insert into export_day as e (data, day, lease, lease_until)
  select 'calls', d::date, $2::uuid, clock_timestamp() + ${leaseTime}
    from (select clock_timestamp() at time zone 'utc' as now) t
      cross join generate_series($1::date, (t.now - interval '1 day')::date - 1, interval '1 day') d
      left join export_day x on x.data = 'calls' and x.day = d::date
    where (x.ended_time is null or not x.is_final and d < (t.now - ${finalAge})::date)
      and (x.lease_until is null or x.lease_until < clock_timestamp())
    order by d limit 1
on conflict (data, day) do update set lease = excluded.lease, lease_until = excluded.lease_until
  where (e.ended_time is null or not e.is_final
      and e.day < (clock_timestamp() at time zone 'utc' - ${finalAge})::date)
    and (e.lease_until is null or e.lease_until < clock_timestamp())
returning day::text, lease, rows, sum, vendor_sum, ended_time is not null as is_exported`;

interface CallDay extends LeasedDay {
  readonly rows: string | null;
  readonly sum: string | null;
  readonly vendor_sum: string | null;
  readonly is_exported: boolean;
}

/** Call records, in the order of their IDs. */
export const callDays: ExportedData<CallDay> = {
  name: "calls",
  async claim(pool, lease) {
    const [month] = await monthsOf(pool, "call");
    if (month === undefined) return undefined;
    return (await pool.query<CallDay>(claimSql, [month.toISOString().slice(0, 10), lease])).rows[0];
  },
  async isUnchanged(pool, { day, is_exported: isExported, rows, sum, vendor_sum: vendorSum }) {
    if (!isExported) return false;
    const [totals] = await totalsOfDays(pool, "call", [day]);
    return totals?.rows === rows && totals?.sum === sum && totals?.vendor_sum === vendorSum;
  },
  async *lines(pool, { day }, totals) {
    const [first, end] = idsOf(day);
    const text = `select * from call where id > $1 and id < $2 order by id limit ${pageRows}`;
    for (let after: string | undefined = first; after !== undefined; ) {
      const { rows }: { rows: StoredCallRow[] } = await pool.query<StoredCallRow>(text, [
        after,
        end,
      ]);
      for (const row of rows) {
        totals.rows += 1n;
        totals.sum += BigInt(row.cost);
        totals.vendorSum += BigInt(row.vendor_cost ?? 0);
      }
      yield rows.map((row) => `${JSON.stringify(operatorLine(row))}\n`).join("");
      after = rows.length < pageRows ? undefined : rows.at(-1)?.id;
    }
  },
};

/** The first ID of a day, and the first of the next. */
function idsOf(day: string): readonly [string, string] {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return [firstId(new Date(ms)), firstId(new Date(ms + dayMs))];
}

/** The line of a customer's export, with what is for operators. */
function operatorLine(row: StoredCallRow) {
  return {
    ...callLine(row),
    vendorCost: vendorCostOf(row),
    upstreamRequestId: row.upstream_request_id,
    usageSource: usageSourceNames.get(row.usage_source) ?? "",
    discountBasisPoints: row.discount_bp,
    units: row.units,
    attempts: row.attempts,
  };
}

const usageSourceNames = new Map(
  UsageSourceSchema.values.map(({ number, name }) => [
    number,
    name.slice("USAGE_SOURCE_".length).toLowerCase(),
  ]),
);

interface DayRow {
  readonly day: string;
  readonly rows: string;
  readonly sum: string;
  readonly vendor_sum: string;
}

async function totalsOfDays(
  client: Queryable,
  table: string,
  days: readonly string[],
): Promise<readonly DayRow[]> {
  const text = `
    select d.day, c.rows, c.sum, c.vendor_sum from unnest($1::text[], $2::uuid[], $3::uuid[]) d(day, first, after)
      cross join lateral (
        select count(*) as rows, coalesce(sum(cost), 0) as sum, coalesce(sum(vendor_cost), 0) as vendor_sum
          from ${escapeIdentifier(table)} where id >= d.first and id < d.after
      ) c`;
  const ids = days.map(idsOf);
  const values = [days, ids.map(([first]) => first), ids.map(([, end]) => end)];
  return (await client.query<DayRow>(text, values)).rows;
}

/**
 * The days of a month with calls that no exported file has. Run it in a transaction that locks the
 * month's table against writes.
 */
export async function unexportedDays(client: Queryable, month: Date): Promise<readonly string[]> {
  const days = daysOf(month);
  const totals = await totalsOfDays(client, partitionName("call", month), days);
  const { rows: exported } = await client.query<DayRow>(
    `select day::text, rows, sum, vendor_sum from export_day
       where data = 'calls' and day = any($1::date[]) and ended_time is not null`,
    [days],
  );
  const byDay = new Map(exported.map((each) => [each.day, each]));
  const isExported = (row: DayRow): boolean => {
    const found = byDay.get(row.day);
    return (
      row.rows === "0" ||
      (found?.rows === row.rows && found.sum === row.sum && found.vendor_sum === row.vendor_sum)
    );
  };
  return totals.filter((row) => !isExported(row)).map(({ day }) => day);
}

/** Has these days exported again. */
export async function exportAgain(client: Queryable, days: readonly string[]): Promise<void> {
  await client.query(
    "update export_day set ended_time = null where data = 'calls' and day = any($1::date[])",
    [days],
  );
}

function daysOf(month: Date): readonly string[] {
  const days: string[] = [];
  for (let at = new Date(month); at.getUTCMonth() === month.getUTCMonth(); ) {
    days.push(at.toISOString().slice(0, 10));
    at = new Date(at.getTime() + dayMs);
  }
  return days;
}
