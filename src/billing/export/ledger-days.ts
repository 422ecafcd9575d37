/**
 * The days of the ledger: the entries between two checkpoints of the audit. Entries have no fixed
 * delay, so a day has the entries that were audited on it; none is missing, and none comes twice.
 */
import { LedgerKindSchema } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { formatUsd } from "../../core/money.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { type ExportedData, type LeasedDay, leaseTime } from "./exported-data.ts";

/**
 * Leases the next day: the oldest with a checkpoint after the last exported one. $1: the lease.
 * Contents of checkpoints count all entries up to them.
 */
const claimSql = `
with last as (
  select coalesce(max(day), '-infinity') as day, coalesce(max(last_seq), 0) as seq
    from export_day where data = 'ledger' and ended_time is not null
), next as (
  select (c.create_time at time zone 'utc')::date as day, max(c.n) as n from ledger_checkpoint c, last
    where c.seq > last.seq and (c.create_time at time zone 'utc')::date > last.day
      and (c.create_time at time zone 'utc')::date < (clock_timestamp() at time zone 'utc')::date
    group by 1 order by 1 limit 1
), leased as (
  insert into export_day as e (data, day, lease, lease_until)
    select 'ledger', next.day, $1::uuid, clock_timestamp() + ${leaseTime} from next
  on conflict (data, day) do update set lease = excluded.lease, lease_until = excluded.lease_until
    where e.ended_time is null and (e.lease_until is null or e.lease_until < clock_timestamp())
  returning day, lease
)
select leased.day::text, lease, last.seq as from_seq, c.seq as to_seq, c.n as checkpoint, c.hash,
    c.contents, (select p.contents from ledger_checkpoint p where p.seq = last.seq order by n desc limit 1) as before
  from leased cross join last join next on next.day = leased.day join ledger_checkpoint c on c.n = next.n`;

interface LedgerDay extends LeasedDay {
  readonly from_seq: string;
  readonly to_seq: string;
  readonly checkpoint: string;
  readonly hash: string;
  readonly contents: string;
  /** Contents of the checkpoint of the last exported day. Null for the first. */
  readonly before: string | null;
}

interface EntryRow {
  readonly txn_id: string;
  readonly account_id: string;
  readonly amount: string;
  readonly create_time: Date;
  readonly account: number;
  readonly kind: number;
  readonly reference: string | null;
  readonly balance_after: string | null;
  readonly call_id: string | null;
  readonly seq: string;
}

/** The number of the customers' ledger account, and of the one of vendors' cost. */
const customers = 1;
const vendorCost = 8;

/** Numbers in a query. A number has up to 200 charges of up to five entries each. */
const numbers = 100n;

/** Ledger entries, in the order of their numbers. */
export const ledgerDays: ExportedData<LedgerDay> = {
  name: "ledger",
  claim: async (pool, lease) => (await pool.query<LedgerDay>(claimSql, [lease])).rows[0],
  async *lines(pool, { from_seq: from, to_seq: to }, totals) {
    const end = BigInt(to);
    for (let after = BigInt(from); after < end; after += numbers) {
      const rows = await readEntries(pool, after, after + numbers < end ? after + numbers : end);
      for (const row of rows) {
        totals.rows += 1n;
        if (row.account === customers) totals.sum += BigInt(row.amount);
        if (row.account === vendorCost) totals.vendorSum += BigInt(row.amount);
      }
      yield rows.map((row) => `${JSON.stringify(line(row))}\n`).join("");
    }
  },
  manifest({ from_seq: after, to_seq: to, checkpoint, hash, contents, before }, { rows, sum }) {
    const counted = difference(contents, before);
    if (counted.entries !== rows || counted.customers !== sum) {
      throw new Error(
        `the ledger has ${rows} entries up to checkpoint ${checkpoint}, which has ${counted.entries}: run uas ledger audit --full`,
      );
    }
    const audited = { checkpoint: Number(checkpoint), checkpointHash: hash };
    return { afterNumber: after, lastNumber: to, ...audited };
  },
  lastSeq: ({ to_seq: to }) => to,
};

async function readEntries(pool: Queryable, after: bigint, to: bigint): Promise<EntryRow[]> {
  const text =
    "select * from ledger_entry where seq > $1 and seq <= $2 order by seq, txn_id, account";
  return (await pool.query<EntryRow>(text, [after, to])).rows;
}

const kindNames = new Map(
  LedgerKindSchema.values.map(({ number, name }) => [
    number,
    name.slice("LEDGER_KIND_".length).toLowerCase(),
  ]),
);

/** An entry. `ledgerAccount`: see `docs/money.md`. */
function line(row: EntryRow) {
  return {
    createdAt: row.create_time.toISOString(),
    number: Number(row.seq),
    transactionId: row.txn_id,
    accountId: row.account_id,
    ledgerAccount: row.account,
    kind: kindNames.get(row.kind) ?? "",
    amount: formatUsd(BigInt(row.amount)),
    currency: "USD",
    balanceAfter: row.balance_after === null ? null : formatUsd(BigInt(row.balance_after)),
    reference: row.reference,
    callId: row.call_id,
  };
}

interface Contents {
  readonly entries: number;
  readonly sums: Readonly<Record<string, string>>;
}

/** Entries and sum of customers that the audit counted between two checkpoints. */
function difference(contents: string, before: string | null) {
  const none: Contents = { entries: 0, sums: {} };
  const now = JSON.parse(contents) as Contents;
  const then = before === null ? none : (JSON.parse(before) as Contents);
  const sumOf = ({ sums }: Contents): bigint => BigInt(sums[customers] ?? 0);
  return { entries: BigInt(now.entries - then.entries), customers: sumOf(now) - sumOf(then) };
}
