/** The invariants of the books, in one SQL statement: one snapshot, also while calls are running. */
import type { Queryable } from "./queryable.ts";

/** A broken rule and the rows concerned. */
export interface AuditBreach {
  /** I1 to I9, see {@link auditSql}. */
  readonly rule: string;
  readonly detail: string;
}

/** The most breaches that one audit names. */
const breachesMax = 100;

/**
 * - I1 the entries of every transaction add up to 0
 * - I2 available + held = the customer entries of the account
 * - I3 held = the open holds of the account
 * - I4 nothing is negative
 * - I5 a settled hold has the entries of its cost, and every charge has its settled hold
 * - I6 no open hold is overdue by more than 60 s
 * - I7 a call that held money has its hold, and that hold is ended
 * - I8 a call's cost is what its hold was settled with
 * - I9 the refunds of a charge do not exceed what the customer paid for it
 *
 * A single statement sees one snapshot: what commits meanwhile is seen everywhere or nowhere.
 */
export const auditSql = `
with txn as (
  select txn_id, sum(amount) as total,
      sum(amount) filter (where account = 2 and kind = 2) as charged,
      -sum(amount) filter (where account = 1 and kind = 2) as paid,
      bool_or(kind = 2) as is_charge
    from ledger_entry group by txn_id
), customer as (
  select account_id, sum(amount) as total from ledger_entry where account = 1 group by account_id
), open_hold as (
  select account_id, sum(amount) as total from hold where state = 1 group by account_id
)
select 'I1' as rule, format('transaction %s adds up to %s', txn_id, total) as detail
  from txn where total <> 0
union all
select 'I2', format('account %s has %s but its entries say %s',
    account_id, coalesce(b.available + b.held, 0), coalesce(c.total, 0))
  from balance b full join customer c using (account_id)
  where coalesce(b.available + b.held, 0) <> coalesce(c.total, 0)
union all
select 'I3', format('account %s has %s held but its open holds say %s',
    account_id, coalesce(b.held, 0), coalesce(o.total, 0))
  from balance b full join open_hold o using (account_id)
  where coalesce(b.held, 0) <> coalesce(o.total, 0)
union all
select 'I4', format('account %s has %s available and %s held', account_id, available, held)
  from balance where available < 0 or held < 0
union all
select 'I4', format('hold %s of %s was settled with %s', id, amount, settled)
  from hold where amount < 0 or settled < 0
union all
select 'I5', format('hold %s was settled with %s but its entries say %s', h.id, h.settled, t.charged)
  from hold h left join txn t on t.txn_id = h.id
  where h.state = 2 and (h.settled is null or t.charged is distinct from h.settled)
union all
select 'I5', format('charge %s has no settled hold', t.txn_id)
  from txn t left join hold h on h.id = t.txn_id and h.state = 2
  where t.is_charge and h.id is null
union all
select 'I6', format('hold %s of account %s expired at %s and is still open', id, account_id, expires_at)
  from hold where state = 1 and expires_at < now() - interval '60 s'
union all
select 'I7', format('call %s held %s but its hold is %s', c.id, c.held,
    case h.state when 1 then 'open' when 4 then 'expired' else 'missing' end)
  from call c left join hold h on h.id = c.id and h.account_id = c.account_id
  where c.held > 0 and (h.id is null or h.state not in (2, 3))
union all
select 'I8', format('call %s says it cost %s but its hold was settled with %s', c.id, c.cost, h.settled)
  from call c left join hold h on h.id = c.id and h.account_id = c.account_id
  where c.cost <> coalesce(h.settled, 0)
union all
select 'I9', format('refunds of charge %s are %s of %s', k.call_id, sum(k.amount), coalesce(max(t.paid), 0))
  from booking k left join txn t on t.txn_id = k.call_id
  where k.call_id is not null
  group by k.call_id having sum(k.amount) > coalesce(max(t.paid), 0)
limit ${breachesMax}`;

/**
 * Checks the books. An empty list: they are right. Reads every row: for people and for an hourly job.
 *
 * @throws the driver's error where the database is away.
 */
export async function auditLedger(pool: Queryable): Promise<AuditBreach[]> {
  const { rows } = await pool.query<{ rule: string; detail: string }>(auditSql);
  return rows;
}
