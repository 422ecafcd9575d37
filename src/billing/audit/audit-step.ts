/**
 * Checks the invariants of new ledger entries, as prepared SQL over sets of rows. Each statement
 * reads a bounded number of rows, because a long snapshot would keep the rows that every call
 * updates from being vacuumed.
 *
 * The rules are those of audit.ts, under the same names.
 */
import { firstId } from "../../db/partition.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { type AuditBreach, breachesMax, budgetBreaches, budgetCharges } from "./audit.ts";

/**
 * Range of an audit step: the entries after `fromSeq` up to `toSeq`, the calls from `fromId` to
 * below `toId`.
 */
export interface AuditWindow {
  readonly fromSeq: string;
  readonly toSeq: string;
  readonly fromId: string;
  readonly toId: string;
}

const floorId = (name: "hold_step" | "call"): string =>
  `coalesce((select first_id from retention_floor where name = '${name}'), ` +
  "'00000000-0000-0000-0000-000000000000')";

const newEntries = "ledger_entry where seq > $1 and seq <= $2";

/**
 * I1, I4, I5, I8, I9, I11 and I16 of the new entries: what a call was charged in all, corrections
 * included, is read with them.
 */
const entriesSql = `
with entry as materialized (
  select txn_id, account, account_id, kind, amount, reference, call_id from ${newEntries}
), event as (
  select t.id, t.account_id, sum(e.amount) filter (where e.account = 2) as charged,
      -sum(e.amount) filter (where e.account = 1) as paid,
      sum(e.amount) filter (where e.account = 8) as vendor
    from (select distinct account_id, coalesce(call_id, txn_id) as id from entry where kind in (2, 6)) t
      cross join lateral (
        select account, amount from ledger_entry
          where txn_id = t.id and account_id = t.account_id and call_id is null and kind in (2, 6)
        union all select account, amount from ledger_side where call_id = t.id and kind in (2, 6)
      ) e group by t.id, t.account_id
), refunded as (
  select distinct b.call_id, b.account_id from entry e
    join booking b on b.account_id = e.account_id and b.reference = e.reference
    where e.kind = 3 and e.account = 1 and b.call_id is not null
)
select 'I1' as rule, format('transaction %s adds up to %s', txn_id, sum(amount)) as detail
  from entry group by txn_id having sum(amount) <> 0
union all
select 'I4', format('charge %s of %s was paid with %s', id, cost, paid)
  from ledger_charge where seq > $1 and seq <= $2 and (cost < 0 or paid < 0 or paid > cost)
union all
select 'I5', format('charge %s of account %s has no ended hold', e.id, e.account_id)
  from event e left join ledger_charge c on c.account_id = e.account_id and c.id = e.id
  where c.id is null
union all
select 'I5', format('charge %s was corrected, but its hold was not ended for its process', c.id)
  from ledger_side s join ledger_charge c on c.account_id = s.account_id and c.id = coalesce(s.call_id, s.txn_id)
  where s.seq > $1 and s.seq <= $2 and s.account = 2 and s.kind in (2, 6) and c.expired is not true
union all
select 'I8', format('call %s says it cost %s but its entries say %s', c.id, c.cost, coalesce(e.charged, 0))
  from event e join call c on c.id = e.id and c.account_id = e.account_id
  where c.cost <> coalesce(e.charged, 0)
union all
select 'I16', format('charge %s of account %s has no call record', h.id, h.account_id)
  from ledger_charge h
  where h.seq > $1 and h.seq <= $2 and h.id >= ${floorId("call")}
    and not exists (select from call c where c.id = h.id and c.account_id = h.account_id)
union all
select 'I11', format('hold %s of %s says it grew %s times but its steps are %s of %s',
    c.id, c.held, c.steps, s.count, s.total)
  from ended_hold c cross join lateral (
    select count(*) as count, coalesce(sum(amount), 0) as total from hold_step where hold_id = c.id) s
  where c.seq > $1 and c.seq <= $2 and c.steps > 0 and (c.steps <> s.count or s.total > c.held)
    and c.id >= ${floorId("hold_step")}
union all
select 'I8', format('call %s says its vendor took %s but its entries say %s',
    c.id, c.vendor_cost, coalesce(e.vendor, 0))
  from event e join call c on c.id = e.id and c.account_id = e.account_id where c.vendor_cost <> coalesce(e.vendor, 0)
union all
select 'I9', format('refunds of charge %s are %s of %s', r.call_id, k.refunded, coalesce(p.paid, 0))
  from refunded r
    cross join lateral (select sum(amount) as refunded from booking where call_id = r.call_id) k
    cross join lateral (select -sum(amount) as paid from (
      select amount from ledger_entry
        where txn_id = r.call_id and account_id = r.account_id and account = 1 and kind in (2, 6)
      union all select amount from ledger_side where call_id = r.call_id and account = 1 and kind in (2, 6)
    ) e) p
  where k.refunded > coalesce(p.paid, 0)
limit ${breachesMax}`;

/** I7, I8 and I11 of calls whose ids are in the window: all of their holds have ended. */
const callsSql = `
with charged as materialized (
  select c.id, c.account_id, c.held, c.cost, h.id as hold_id, h.held as amount, coalesce(h.steps, 0) as steps,
      coalesce(h.cost, 0) + coalesce((select sum(s.amount) from (
        select amount from ledger_side
          where txn_id = h.id and account = 2 and kind = 2 and call_id is null and h.expired
        union all select amount from ledger_side
          where call_id = h.id and account = 2 and kind = 6 and h.expired) s), 0) as charged
    from call c left join ended_hold h on h.account_id = c.account_id and h.id = c.id
    where c.id >= $1 and c.id < $2
), step as (
  select hold_id, count(*) as count, sum(amount) as total from hold_step
    where hold_id >= $1 and hold_id < $2 group by hold_id
)
select 'I7' as rule, format('call %s held %s but its hold is %s', id, held,
    case when exists (select from open_hold o where o.id = charged.id) then 'open' else 'missing' end) as detail
  from charged where held > 0 and hold_id is null
union all
select 'I8', format('call %s says it cost %s but its hold was settled with %s', id, cost, charged)
  from charged where cost <> charged
union all
select 'I11', format('hold %s of %s says it grew %s times but its steps are %s of %s',
    s.hold_id, c.amount, c.steps, s.count, s.total)
  from step s join charged c on c.hold_id = s.hold_id
  where c.steps <> s.count or s.total > c.amount
limit ${breachesMax}`;

/** I12 of one hour: $1 is its begin, $2 and $3 bound the ids of its calls. */
const hourSql = `
with used_hour as (
  select account_id, key_id, model, vendor,
      (calls, failed_calls, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
        reasoning_tokens, images, second_micros, cost, vendor_cost)::text as used
    from usage_hour where hour = $1 and calls > 0
), call_hour as (
  select account_id, key_id, model, vendor,
      (count(*), count(*) filter (where ending not in (1, 5, 10)), sum(input_tokens),
        sum(cached_input_tokens), sum(cache_write_tokens), sum(output_tokens), sum(reasoning_tokens),
        coalesce(sum(images), 0), coalesce(sum(second_micros), 0), sum(cost),
        coalesce(sum(vendor_cost), 0))::text as used
    from call where id >= $2 and id < $3 group by account_id, key_id, model, vendor
)
select 'I12' as rule,
    format('account %s used %s in the hour %s with key %s, model %s and vendor %s but its calls say %s',
      account_id, u.used, $1::timestamptz, key_id, model, vendor, c.used) as detail
  from used_hour u full join call_hour c using (account_id, key_id, model, vendor)
  where u.used is distinct from c.used
    and $1 >= uuid_hour(${floorId("call")})
limit ${breachesMax}`;

/** I5, I6 and I11 of open holds. There are as many as calls that run. */
const openSql = `
select 'I6' as rule,
    format('hold %s of account %s expired at %s and is still open', id, account_id, expires_at) as detail
  from open_hold where expires_at < now() - interval '60 s'
union all
select 'I6', format('hold %s of account %s is open but process %s has been silent since %s',
    h.id, h.account_id, n.name, n.seen_time)
  from open_hold h join node n on n.id = h.node_id
  where n.seen_time < now() - interval '60 s'
union all
select 'I5', format('hold %s has ended and is open', h.id)
  from open_hold h join ended_hold c on c.account_id = h.account_id and c.id = h.id
union all
select 'I11', format('hold %s is not open but has a checkpoint', c.hold_id)
  from hold_checkpoint c left join open_hold h on h.id = c.hold_id
  where h.id is null
limit ${breachesMax}`;

/** Maximum number of accounts or keys that one statement compares. */
const ownersMax = 20_000;

/**
 * I2, I3 and I4 of the accounts after $2 up to $3 (null: all), with the entries that are newer than
 * the audited ones.
 */
const accountsSql = `
with audited as (
  select account_id, sum(amount) as total from (
    select account_id, amount from audited_account
    union all select account_id, amount from ledger_entry where seq > $1 and account = 1
  ) e where account_id > $2 and ($3::uuid is null or account_id <= $3) group by account_id
), open as (
  select account_id, sum(amount) as total from open_hold
    where account_id > $2 and ($3::uuid is null or account_id <= $3) group by account_id
), had as (
  select account_id, available, held from balance
    where account_id > $2 and ($3::uuid is null or account_id <= $3)
)
select 'I2' as rule, format('account %s has %s but its entries say %s',
    account_id, coalesce(b.available + b.held, 0), coalesce(c.total, 0)) as detail
  from had b full join audited c using (account_id)
  where coalesce(b.available + b.held, 0) <> coalesce(c.total, 0)
union all
select 'I3', format('account %s has %s held but its open holds say %s',
    account_id, coalesce(b.held, 0), coalesce(o.total, 0))
  from had b full join open o using (account_id)
  where coalesce(b.held, 0) <> coalesce(o.total, 0)
union all
select 'I4', format('account %s has %s available and %s held', account_id, available, held)
  from had where available < 0 or held < 0
limit ${breachesMax}`;

/** I10 of the keys after $2 up to $3 (null: all). */
const keysSql = `
with audited as (
  select key_id, sum(spent) as spent from (
    select key_id, spent from audited_key
    union all
    select h.key_id, e.amount from ledger_entry e
      join ledger_charge h on h.account_id = e.account_id and h.id = coalesce(e.call_id, e.txn_id)
      where e.seq > $1 and e.account = 2 and e.kind in (2, 6) and h.key_id is not null
  ) s where key_id > $2 and ($3::uuid is null or key_id <= $3) group by key_id
), open as (
  select key_id, sum(amount) as held from open_hold
    where key_id > $2 and ($3::uuid is null or key_id <= $3) group by key_id
), had as (
  select key_id, spent, held, carried from key_spend
    where key_id > $2 and ($3::uuid is null or key_id <= $3)
)
select 'I10' as rule, format('key %s has spent %s and holds %s but its entries say %s and its holds %s',
    key_id, k.spent, k.held, k.carried + coalesce(a.spent, 0), coalesce(h.held, 0)) as detail
  from had k full join audited a using (key_id) full join open h using (key_id)
  where coalesce(k.spent, 0) <> coalesce(k.carried, 0) + coalesce(a.spent, 0)
    or coalesce(k.held, 0) <> coalesce(h.held, 0)
limit ${breachesMax}`;

/** I15, with the entries that are newer than the audited ones. */
const budgetsSql = `${budgetBreaches(`
  select owner_id, period, sum(spent) as spent from (
    select a.owner_id, a.period, a.spent
      from audited_budget a join budget b using (owner_id, period, start_time, from_seq)
    union all select b.owner_id, b.period, e.amount ${budgetCharges} where e.seq > $1
  ) s group by owner_id, period`)}
limit ${breachesMax}`;

const hourMs = 60 * 60 * 1_000;

/** Checks the new entries, and the calls of a window. All statements see the caller's snapshot. */
export async function auditWindow(
  client: Queryable,
  { fromSeq, toSeq, fromId, toId }: AuditWindow,
): Promise<AuditBreach[]> {
  return [
    ...(await breaches(client, entriesSql, [fromSeq, toSeq])),
    ...(await breaches(client, callsSql, [fromId, toId])),
  ];
}

/**
 * The next full hour from $3 to below $4 that has calls or sums of calls; $1 and $2 bound the ids
 * of the calls.
 */
const nextHourSql = `
select least(
  (select uuid_hour(id) from call where id >= $1 and id < $2 order by id limit 1),
  (select hour from usage_hour where hour >= $3 and hour < $4 and calls > 0 order by hour limit 1)
) as hour`;

/**
 * Checks the sums of full hours, from the hour of the first call of a window to the hour before
 * `toId`, hour by hour. Hours without calls are skipped: a gateway that was idle for half a year
 * has 4,400 of them.
 */
export async function auditHours(
  client: Queryable,
  { fromId, toId }: Pick<AuditWindow, "fromId" | "toId">,
): Promise<AuditBreach[]> {
  const { rows } = await client.query<{ id: string | null }>(
    "select (select id from call where id >= $1 and id < $2 order by id limit 1) as id",
    [fromId, toId],
  );
  const found: AuditBreach[] = [];
  const first = rows[0]?.id;
  if (first === null || first === undefined) return found;
  const endMs = hourOf(toId);
  for (
    let beginMs: number | undefined = hourOf(first);
    beginMs !== undefined && beginMs < endMs;
  ) {
    const nextMs = beginMs + hourMs;
    const bounds = [new Date(beginMs), idAt(beginMs), idAt(nextMs)];
    found.push(...(await breaches(client, hourSql, bounds)));
    beginMs = await nextHour(client, nextMs, endMs);
  }
  return found;
}

async function nextHour(
  client: Queryable,
  fromMs: number,
  endMs: number,
): Promise<number | undefined> {
  const { rows } = await client.query<{ hour: Date | null }>(nextHourSql, [
    ...[idAt(fromMs), idAt(endMs)],
    ...[new Date(fromMs), new Date(endMs)],
  ]);
  return rows[0]?.hour?.getTime();
}

/**
 * Checks what is true at any moment: balances, what keys and budgets have spent and hold, open
 * holds.
 *
 * @param seq the entries up to it are in `audited_account`, `audited_key` and `audited_budget`
 */
export async function auditNow(client: Queryable, seq: string): Promise<AuditBreach[]> {
  return [
    ...(await breaches(client, openSql, [])),
    ...(await byOwner(client, "balance", "account_id", accountsSql, seq)),
    ...(await byOwner(client, "key_spend", "key_id", keysSql, seq)),
    ...(await breaches(client, budgetsSql, [seq])),
  ];
}

/** Runs a statement for one range of owners after the other, so that none sees an old snapshot. */
async function byOwner(
  client: Queryable,
  table: string,
  column: string,
  text: string,
  seq: string,
): Promise<AuditBreach[]> {
  const found: AuditBreach[] = [];
  let after: string | null = "00000000-0000-0000-0000-000000000000";
  while (after !== null) {
    const { rows }: { rows: { id: string }[] } = await client.query<{ id: string }>(
      `select ${column} as id from ${table} where ${column} > $1 order by 1 offset $2 limit 1`,
      [after, ownersMax - 1],
    );
    const last: string | null = rows[0]?.id ?? null;
    found.push(...(await breaches(client, text, [seq, after, last])));
    after = last;
  }
  return found;
}

async function breaches(
  client: Queryable,
  text: string,
  values: unknown[],
): Promise<AuditBreach[]> {
  return (await client.query<{ rule: string; detail: string }>(text, values)).rows;
}

/** The hour in which a UUIDv7 was made, in milliseconds. */
function hourOf(id: string): number {
  const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  return Math.floor(ms / hourMs) * hourMs;
}

function idAt(ms: number): string {
  return firstId(new Date(ms));
}
