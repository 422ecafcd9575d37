/**
 * The invariants of the whole ledger in one SQL statement, which sees one snapshot while calls run.
 * It reads every row: for operators and tests. The hourly audit checks the same rules of what is
 * new: audit-step.ts.
 */
import type { Queryable } from "../../db/pool/queryable.ts";

/** The lowest id. */
const nilId = "00000000-0000-0000-0000-000000000000";

/** A broken invariant, and the row that breaks it. */
export interface AuditBreach {
  /** I1 to I12, I15 and I16, see {@link auditSql}; I13 and I14: checkpoint.ts. */
  readonly rule: string;
  readonly detail: string;
}

/** The most breaches that one audit reports. */
export const breachesMax = 100;

/**
 * SQL: the charges `e` of holds that the current period of a budget `b` counts. To be followed by
 * conditions.
 */
export const budgetCharges = `
  from ledger_entry e
    join ledger_charge h on h.account_id = e.account_id and h.id = coalesce(e.call_id, e.txn_id)
    join budget b on b.account_id = h.account_id and b.owner_id in (h.account_id, h.key_id)
      and h.budget_time >= b.start_time and e.seq > b.from_seq and e.account = 2 and e.kind in (2, 6)`;

/**
 * SQL: I15. A budget whose period is over begins the next one with its next call: until then
 * nothing is said of it.
 *
 * @param entries SQL of what the entries say: owner_id, period and spent
 */
export const budgetBreaches = (entries: string): string => `
select 'I15' as rule, format('budget %s of %s has spent %s and holds %s but its entries say %s and its holds %s',
    b.period, b.owner_id, b.spent, b.held, b.carried + coalesce(e.spent, 0), coalesce(o.held, 0)) as detail
  from budget b left join (${entries}) e using (owner_id, period) left join (
    select b.owner_id, b.period, sum(h.amount) as held
      from open_hold h join budget b on b.account_id = h.account_id and b.owner_id in (h.account_id, h.key_id)
        and h.budget_time >= b.start_time
      group by b.owner_id, b.period
  ) o using (owner_id, period)
  where b.end_time > now()
    and (b.spent <> b.carried + coalesce(e.spent, 0) or b.held <> coalesce(o.held, 0))`;

/**
 * The invariants:
 *
 * - I1 the entries of every transaction add up to 0
 * - I2 available + held = the customer entries of the account
 * - I3 held = the open holds of the account
 * - I4 no amount is negative
 * - I5 a hold is either open or ended; only a charge whose hold was ended for its process is
 *   corrected, and nothing else charges
 * - I6 no open hold is overdue by more than 60 s, or belongs to a process that has been silent for
 *   as long
 * - I7 a call that held money has its hold, and that hold is ended
 * - I8 a call's cost equals its charge and its corrections, and its vendor cost equals the booked
 *   one
 * - I9 the refunds of a charge do not exceed what the customer paid for it
 * - I10 the spent and held amounts of a key equal those of its holds
 * - I11 only open holds have a checkpoint, and the number of steps of a hold matches its counter
 * - I12 the hourly usage of an account equals the sum of its calls
 * - I15 the spent and held amounts of a budget equal the entries and open holds of its current
 *   period
 * - I16 a charged call has its record
 *
 * A single statement sees one snapshot, so a concurrent commit is visible in all its parts or in
 * none. Calls and steps of holds that retention removed (retention_floor) do not count as missing.
 */
export const auditSql = `
with floor as (
  select coalesce(max(first_id::text) filter (where name = 'hold_step'), '${nilId}')::uuid as step_id,
      coalesce(max(first_id::text) filter (where name = 'released_hold'), '${nilId}')::uuid as released_id,
      coalesce(max(first_id::text) filter (where name = 'call'), '${nilId}')::uuid as call_id
    from retention_floor
), txn as (
  select txn_id, sum(amount) as total from ledger_entry group by txn_id
), event as (
  select coalesce(call_id, txn_id) as id, account_id,
      sum(amount) filter (where account = 2) as charged,
      -sum(amount) filter (where account = 1) as paid,
      sum(amount) filter (where account = 8) as vendor
    from ledger_entry where kind in (2, 6) group by coalesce(call_id, txn_id), account_id
), customer as (
  select account_id, sum(amount) as total from ledger_entry where account = 1 group by account_id
), open as (
  select account_id, sum(amount) as total from open_hold group by account_id
), key_hold as (
  select key_id, coalesce(sum(settled) filter (where state <> 1), 0) as spent,
      coalesce(sum(amount) filter (where state = 1), 0) as held
    from hold where key_id is not null group by key_id
), step as (
  select hold_id, count(*) as count, sum(amount) as total from hold_step group by hold_id
), used_hour as (
  select account_id, hour, key_id, model, vendor,
      (calls, failed_calls, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
        reasoning_tokens, images, second_micros, cost, vendor_cost)::text as used
    from usage_hour, floor where calls > 0 and hour >= uuid_hour(floor.call_id)
), call_hour as (
  select account_id, uuid_hour(id) as hour, key_id, model, vendor,
      (count(*), count(*) filter (where ending not in (1, 5, 10)), sum(input_tokens),
        sum(cached_input_tokens), sum(cache_write_tokens), sum(output_tokens), sum(reasoning_tokens),
        coalesce(sum(images), 0), coalesce(sum(second_micros), 0), sum(cost),
        coalesce(sum(vendor_cost), 0))::text as used
    from call, floor where id >= floor.call_id group by account_id, uuid_hour(id), key_id, model, vendor
)
select 'I1' as rule, format('transaction %s adds up to %s', txn_id, total) as detail
  from txn where total <> 0
union all
${budgetBreaches(`select b.owner_id, b.period, sum(e.amount) as spent ${budgetCharges} group by b.owner_id, b.period`)}
union all
select 'I2', format('account %s has %s but its entries say %s',
    account_id, coalesce(b.available + b.held, 0), coalesce(c.total, 0))
  from balance b full join customer c using (account_id)
  where coalesce(b.available + b.held, 0) <> coalesce(c.total, 0)
union all
select 'I3', format('account %s has %s held but its open holds say %s',
    account_id, coalesce(b.held, 0), coalesce(o.total, 0))
  from balance b full join open o using (account_id)
  where coalesce(b.held, 0) <> coalesce(o.total, 0)
union all
select 'I4', format('account %s has %s available and %s held', account_id, available, held)
  from balance where available < 0 or held < 0
union all
select 'I4', format('hold %s of %s was settled with %s', id, amount, settled)
  from hold where amount < 0 or settled < 0
union all
select 'I4', format('charge %s of %s was paid with %s', id, cost, paid)
  from ledger_charge where cost < 0 or paid < 0 or paid > cost
union all
select 'I5', format('hold %s has ended and is open', h.id)
  from open_hold h join ended_hold c on c.account_id = h.account_id and c.id = h.id
union all
select 'I5', format('charge %s of account %s has no ended hold', e.id, e.account_id)
  from event e left join ledger_charge c on c.account_id = e.account_id and c.id = e.id
  where c.id is null
union all
select 'I5', format('charge %s was corrected, but its hold was not ended for its process', c.id)
  from ledger_side s join ledger_charge c on c.account_id = s.account_id and c.id = coalesce(s.call_id, s.txn_id)
  where s.account = 2 and s.kind in (2, 6) and c.expired is not true
union all
select 'I6', format('hold %s of account %s expired at %s and is still open', id, account_id, expires_at)
  from open_hold where expires_at < now() - interval '60 s'
union all
select 'I6', format('hold %s of account %s is open but process %s has been silent since %s',
    h.id, h.account_id, n.name, n.seen_time)
  from open_hold h join node n on n.id = h.node_id
  where n.seen_time < now() - interval '60 s'
union all
select 'I7', format('call %s held %s but its hold is %s', c.id, c.held,
    case h.state when 1 then 'open' else 'missing' end)
  from call c cross join floor left join hold h on h.id = c.id and h.account_id = c.account_id
  where c.held > 0 and (h.state = 1 or h.id is null and (c.cost > 0 or c.id >= floor.released_id))
union all
select 'I8', format('call %s says it cost %s but its hold was settled with %s', c.id, c.cost, h.settled)
  from call c left join hold h on h.id = c.id and h.account_id = c.account_id
  where c.cost <> coalesce(h.settled, 0)
union all
select 'I8', format('call %s says its vendor took %s but its entries say %s',
    c.id, c.vendor_cost, coalesce(e.vendor, 0))
  from call c left join event e on e.id = c.id and e.account_id = c.account_id
  where c.vendor_cost <> coalesce(e.vendor, 0)
union all
select 'I9', format('refunds of charge %s are %s of %s', k.call_id, sum(k.amount), coalesce(max(e.paid), 0))
  from booking k left join event e on e.id = k.call_id and e.account_id = k.account_id
  where k.call_id is not null
  group by k.call_id having sum(k.amount) > coalesce(max(e.paid), 0)
union all
select 'I10', format('key %s has spent %s and holds %s but its holds say %s and %s',
    key_id, k.spent, k.held, k.carried + coalesce(h.spent, 0), coalesce(h.held, 0))
  from key_spend k full join key_hold h using (key_id)
  where k.spent is distinct from k.carried + coalesce(h.spent, 0)
    or k.held is distinct from coalesce(h.held, 0)
union all
select 'I11', format('hold %s is not open but has a checkpoint', c.hold_id)
  from hold_checkpoint c left join open_hold h on h.id = c.hold_id
  where h.id is null
union all
select 'I11', format('hold %s of %s says it grew %s times but its steps are %s of %s',
    coalesce(h.id, s.hold_id), h.amount, h.steps, coalesce(s.count, 0), coalesce(s.total, 0))
  from (select id, amount, steps from hold, floor where steps > 0 and id >= floor.step_id) h
    full join step s on s.hold_id = h.id
  where h.steps is distinct from s.count or s.total > h.amount
union all
select 'I12', format('account %s used %s in the hour %s with key %s, model %s and vendor %s but its calls say %s',
    account_id, u.used, hour, key_id, model, vendor, c.used)
  from used_hour u full join call_hour c using (account_id, hour, key_id, model, vendor)
  where u.used is distinct from c.used
union all
select 'I16', format('charge %s of account %s has no call record', h.id, h.account_id)
  from ledger_charge h cross join floor left join call c on c.id = h.id and c.account_id = h.account_id
  where c.id is null and h.id >= floor.call_id
limit ${breachesMax}`;

/**
 * Checks the invariants of the whole ledger. Returns an empty list if none is broken.
 *
 * @throws the driver's error if the database is unreachable.
 */
export async function auditLedger(pool: Queryable): Promise<AuditBreach[]> {
  const { rows } = await pool.query<{ rule: string; detail: string }>(auditSql);
  return rows;
}
