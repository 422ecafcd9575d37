/** What a batch brings beside ordinary holds and settlements. Called by `ledger_apply` under the account's lock. */
import { planSettings } from "./0005-money-apply.ts";

/**
 * Grows holds and keeps their checkpoints. Amounts are what is to be held; each grant is what the balance
 * and the key's limit still give, in the order of the extensions. A hold comes once in a batch.
 * p_checkpoints: [{ id, cost, record }].
 */
const extend = `
create function ledger_extend(
  p_account uuid, p_ids uuid[], p_amounts bigint[], p_checkpoints json, p_available bigint,
  out verdicts text, out grown bigint
) language plpgsql ${planSettings} as $$
declare
  v_row record;
  v_growth bigint;
  v_is_plain boolean := true;
  v_words text[] := '{}';
  v_ids uuid[] := '{}';
  v_growths bigint[] := '{}';
begin
  grown := 0;
  for v_row in
    select t.amount, h.id, h.amount as held, h.key_id, h.key_limit
      from unnest(p_ids, p_amounts) with ordinality as t(id, amount, n)
        left join hold h on h.id = t.id and h.account_id = p_account and h.state + 0 = 1
      order by t.n
  loop
    if v_row.id is null then
      v_words := v_words || 'c'::text;
      v_is_plain := false;
      continue;
    end if;
    v_growth := least(greatest(v_row.amount - v_row.held, 0), p_available - grown);
    if v_growth > 0 and v_row.key_limit is not null then
      select least(v_growth, greatest(v_row.key_limit - k.spent - k.held, 0)) into v_growth
        from key_spend k where k.key_id = v_row.key_id;
      update key_spend k set held = k.held + v_growth where k.key_id = v_row.key_id and v_growth > 0;
    end if;
    v_words := v_words || (v_row.held + v_growth)::text;
    v_is_plain := v_is_plain and v_row.held + v_growth = v_row.amount;
    if v_growth > 0 then
      v_ids := v_ids || v_row.id;
      v_growths := v_growths || v_growth;
      grown := grown + v_growth;
    end if;
  end loop;
  if not v_is_plain then verdicts := array_to_string(v_words, ','); end if;

  if grown > 0 then
    with steps as (
      update hold h set amount = h.amount + g.growth, steps = h.steps + 1
        from unnest(v_ids, v_growths) as g(id, growth) where h.id = g.id
        returning h.id, h.steps, g.growth, h.key_id, h.key_limit
    ), spent as (
      update key_spend k set held = k.held + s.growth
        from (select key_id, sum(growth)::bigint as growth from steps
          where key_id is not null and key_limit is null group by key_id) s
        where k.key_id = s.key_id
    ) insert into hold_step (hold_id, n, amount) select id, steps, growth from steps;
  end if;

  if p_checkpoints is not null then
    with told as (
      insert into hold_checkpoint (hold_id, cost, record)
        select c.id, c.cost, c.record
          from json_to_recordset(p_checkpoints) as c(id uuid, cost bigint, record json)
            join hold h on h.id = c.id and h.account_id = p_account and h.state + 0 = 1
        on conflict (hold_id) do update set cost = excluded.cost,
          record = coalesce(excluded.record, hold_checkpoint.record)
        returning hold_id
    ) update hold h set checkpointed = true from told
        where h.id = told.hold_id and not h.checkpointed;
  end if;
end $$`;

/**
 * The settlements of a batch that are not of open holds.
 *
 * - Late: the hold was ended for a process that was taken for dead (state 4). What it really cost replaces
 *   what it was charged then: as the call's charge where nothing was booked yet, else by a correction with an
 *   id of its own that names the call. What the customer has got back by a refund stays got back, once.
 * - Never made: charges nothing. The record is written with cost 0, and a closed hold of 0 is left behind so
 *   that neither a repetition nor a late hold can do harm.
 * - Settled before: nothing.
 */
const settleOdd = `
create function ledger_settle_odd(
  p_account uuid, p_ids uuid[], p_costs bigint[], p_vendor_costs bigint[], p_calls json,
  p_done uuid[], p_available bigint, p_held bigint, out verdicts text, out available bigint
) language plpgsql ${planSettings} as $$
declare
  v_row record;
  v_late uuid[];
  v_unknown uuid[];
begin
  available := p_available;
  for v_row in
    select distinct on (s.id) s.id, s.cost, s.vendor
      from unnest(p_ids, p_costs, p_vendor_costs) as s(id, cost, vendor) join hold h on h.id = s.id
      where h.account_id = p_account and h.state = 4 order by s.id
  loop
    available := ledger_settle_late(p_account, v_row.id, v_row.cost, v_row.vendor, available, p_held);
    v_late := v_late || v_row.id;
  end loop;

  with tombs as (
    insert into hold (id, account_id, amount, settled, expires_at, state)
      select distinct s.id, p_account, 0, 0, now(), 3 from unnest(p_ids) as s(id)
        where not exists (select from hold h where h.id = s.id)
      on conflict (id) do nothing
      returning id
  ) select array_agg(id) into v_unknown from tombs;

  if p_calls is not null then
    delete from call c using json_populate_recordset(null::call, p_calls) r
      where c.id = r.id and r.id = any(v_late);
    insert into call select * from json_populate_recordset(null::call, p_calls) r
      where r.id = any(p_done) or r.id = any(v_late) or r.id = any(v_unknown)
      on conflict (id) do nothing;
  end if;
  update call set cost = 0, held = 0, vendor_cost = null where id = any(v_unknown);

  select string_agg(case
        when s.id = any(p_done) or s.id = any(v_late) then 's' when s.id = any(v_unknown) then 'u'
        when h.account_id = p_account then 'a' else 'u' end, ',' order by s.n)
    into verdicts
    from unnest(p_ids) with ordinality as s(id, n) left join hold h on h.id = s.id;
end $$`;

/** One late settlement. Returns what is available then. Of the money there is nothing held any more. */
const settleLate = `
create function ledger_settle_late(
  p_account uuid, p_id uuid, p_cost bigint, p_vendor bigint, p_available bigint, p_held bigint
) returns bigint language plpgsql ${planSettings} as $$
declare
  v_cost bigint;
  v_key uuid;
  v_paid bigint;
  v_vendor bigint;
  v_is_charged boolean;
  v_pays bigint;
  v_txn uuid := p_id;
begin
  select coalesce(settled, 0), key_id into v_cost, v_key from hold where id = p_id;
  select coalesce(-sum(amount) filter (where account = 1), 0),
      coalesce(sum(amount) filter (where account = 8), 0), count(*) > 0
    into v_paid, v_vendor, v_is_charged from ledger_entry where txn_id = p_id;
  if v_is_charged then v_txn := ledger_uuid(); end if;
  v_pays := greatest(least(p_cost, v_paid + p_available), least(v_paid,
    coalesce((select sum(k.amount) from booking k where k.call_id = p_id), 0)));
  insert into ledger_entry (txn_id, account, account_id, kind, amount, balance_after, call_id)
    select v_txn, e.account, p_account, case when v_is_charged then 6 else 2 end, e.amount,
        case e.account when 1 then p_available + p_held + e.amount end,
        case when v_is_charged then p_id end
      from (values (1, v_paid - v_pays), (2, p_cost - v_cost), (6, v_pays - v_paid - p_cost + v_cost),
        (7, v_vendor - coalesce(p_vendor, v_vendor)), (8, coalesce(p_vendor, v_vendor) - v_vendor)
      ) as e(account, amount)
      where e.amount <> 0;
  update hold set state = case when p_cost > 0 then 2 else 3 end, settled = p_cost where id = p_id;
  update key_spend k set spent = k.spent + p_cost - v_cost where k.key_id = v_key;
  update call set cost = p_cost where id = p_id;
  return p_available + v_paid - v_pays;
end $$`;

/** A fresh UUIDv7, by the clock of the database: the id of a transaction that nobody asked for. */
const uuid = `
create function ledger_uuid() returns uuid language sql volatile as $$
  select encode(set_byte(b, 6, (get_byte(b, 6) & 15) | 112), 'hex')::uuid
    from (select overlay(uuid_send(gen_random_uuid()) placing substring(int8send(
      floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6) as b) as random
$$`;

/** In the order of their creation. */
export const oddFunctions: readonly string[] = [uuid, extend, settleLate, settleOdd];
