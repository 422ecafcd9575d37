/** The request ids of holds: calls that are lost before they have told anything of themselves are found by them. */
import { Migration } from "@mikro-orm/migrations";
import { planSettings } from "./0005-money-apply.ts";

/**
 * Null: not known, made by an older version, or closed: holds are never deleted, and what a closed one stands for
 * has a record with its request id. So a call adds no byte to what is kept.
 */
const hold = `
alter table "hold" add column "request_id" text null`;

/** As before (see 0005-money-apply.ts), with what a call is found by. */
const admit = `
drop function ledger_admit;
create function ledger_admit(
  p_account uuid, p_node uuid, p_ids uuid[], p_amounts bigint[], p_keys uuid[], p_limits bigint[],
  p_ttl_ms integer, p_available bigint, p_requests text[], out verdicts text, out made bigint
) language plpgsql ${planSettings} as $$
declare
  v_words text[] := '{}';
  v_word text;
  v_count integer;
  v_remaining bigint;
begin
  made := 0;
  for i in 1..cardinality(p_ids) loop
    select case when h.account_id = p_account and h.state = 1 then 'd' else 'c' end into v_word
      from hold h where h.id = p_ids[i];
    if not found then
      -- A call for nothing is not refused, also where a cost has gone over the limit.
      v_remaining := case when p_limits[i] is not null then greatest(p_limits[i] - coalesce(
        (select k.spent + k.held from key_spend k where k.key_id = p_keys[i]), 0), 0) end;
      if p_amounts[i] > p_available - made then
        v_word := (p_available - made)::text;
      elsif p_amounts[i] > v_remaining then
        v_word := format('%s/%s', p_available - made, v_remaining);
      else
        insert into hold (id, account_id, amount, node_id, key_id, key_limit, expires_at, request_id)
          values (p_ids[i], p_account, p_amounts[i], p_node, p_keys[i], p_limits[i],
            clock_timestamp() + p_ttl_ms * interval '1 ms', p_requests[i])
          on conflict (id) do nothing;
        get diagnostics v_count = row_count;
        v_word := case when v_count = 1 then 'a' else 'c' end;
        made := made + v_count * p_amounts[i];
        if v_count = 1 and p_keys[i] is not null then
          insert into key_spend as k (key_id, account_id, held)
            values (p_keys[i], p_account, p_amounts[i])
            on conflict (key_id) do update set held = k.held + excluded.held;
        end if;
      end if;
    end if;
    v_words := v_words || v_word;
  end loop;
  verdicts := array_to_string(v_words, ',');
end $$`;

/**
 * As before (see 0005-money-apply.ts), with p_hold_requests: the request ids of the holds, or null. A hold that ends
 * forgets its own.
 */
const apply = `
create function ledger_apply(
  p_account uuid, p_node uuid, p_node_name text,
  p_settle_ids uuid[], p_settle_costs bigint[], p_vendor_costs bigint[], p_calls json,
  p_extend_ids uuid[], p_extend_amounts bigint[], p_checkpoints json,
  p_hold_ids uuid[], p_hold_amounts bigint[], p_hold_keys uuid[], p_hold_limits bigint[],
  p_ttl_ms integer, p_hold_requests text[],
  out settle_verdicts text, out extend_verdicts text, out hold_verdicts text, out low_balance bigint
) language plpgsql ${planSettings}
as $$
declare
  v_available bigint;
  v_held bigint;
  v_low bigint;
  v_before bigint;
  v_count integer;
  v_sum bigint;
  v_paid bigint;
  v_ids uuid[];
  v_checkpointed boolean;
begin
  select b.available, b.held, b.low_below into v_available, v_held, v_low
    from balance b where b.account_id = p_account for update;
  if not found then
    insert into balance (account_id) values (p_account) on conflict do nothing;
    select b.available, b.held, b.low_below into v_available, v_held, v_low
      from balance b where b.account_id = p_account for update;
  end if;
  v_before := v_available + v_held;
  if p_node_name is not null then
    insert into node (id, name) values (p_node, p_node_name) on conflict do nothing;
  end if;

  if cardinality(p_settle_ids) > 0 then
    with ended as (
      update hold h
        set state = case when s.cost > 0 then 2 else 3 end, settled = s.cost, request_id = null
        from unnest(p_settle_ids, p_settle_costs, p_vendor_costs) as s(id, cost, vendor)
        where h.id = s.id and h.account_id = p_account and h.state + 0 = 1
        returning h.id, s.cost, s.vendor, h.amount as released, h.key_id, h.checkpointed
    ), pooled as (
      select id, cost, vendor, released, checkpointed, greatest(cost - released, 0) as excess,
          v_available + sum(greatest(released - cost, 0)) over ()
            - sum(greatest(cost - released, 0)) over (order by id) as remaining
        from ended
    ), priced as (
      select id, cost, vendor, released, checkpointed,
          cost - least(excess, greatest(-remaining, 0))::bigint as paid
        from pooled
    ), spent as (
      update key_spend k set spent = k.spent + s.cost, held = k.held - s.released
        from (select key_id, sum(cost)::bigint as cost, sum(released)::bigint as released
          from ended where key_id is not null group by key_id) s
        where k.key_id = s.key_id
    ), entries as (
      insert into ledger_entry (txn_id, account, account_id, kind, amount, balance_after)
        select p.id, e.account, p_account, 2, e.amount, e.balance
          from (select id, cost, vendor, paid,
              v_before - (sum(paid) over (order by id))::bigint as balance from priced) p
            cross join lateral (values (1, -p.paid, p.balance), (2, p.cost, null),
              (6, p.paid - p.cost, null), (7, -p.vendor, null), (8, p.vendor, null)
            ) as e(account, amount, balance)
          where e.amount <> 0
    )
    select count(*), coalesce(sum(released), 0), coalesce(sum(paid), 0), array_agg(id),
        bool_or(checkpointed)
      into v_count, v_sum, v_paid, v_ids, v_checkpointed from priced;
    v_available := v_available + v_sum - v_paid;
    v_held := v_held - v_sum;

    if v_checkpointed then delete from hold_checkpoint where hold_id = any(v_ids); end if;
    if v_count = cardinality(p_settle_ids) then
      if p_calls is not null then
        insert into call select * from json_populate_recordset(null::call, p_calls)
          on conflict (id) do nothing;
      end if;
    else
      select o.verdicts, o.available into settle_verdicts, v_available
        from ledger_settle_odd(p_account, p_settle_ids, p_settle_costs, p_vendor_costs, p_calls,
          v_ids, v_available, v_held) o;
    end if;
  end if;

  if cardinality(p_extend_ids) > 0 then
    select e.verdicts, e.grown into extend_verdicts, v_sum
      from ledger_extend(p_account, p_extend_ids, p_extend_amounts, p_checkpoints, v_available) e;
    v_available := v_available - v_sum;
    v_held := v_held + v_sum;
  end if;

  if cardinality(p_hold_ids) > 0 then
    select sum(amount) into v_sum from unnest(p_hold_amounts) as amount;
    if v_sum <= v_available
      and (p_hold_limits is null or ledger_keys_fit(p_hold_keys, p_hold_amounts, p_hold_limits))
    then
      with made as (
        insert into hold (id, account_id, amount, node_id, key_id, key_limit, expires_at, request_id)
          select t.id, p_account, t.amount, p_node, t.key_id, t.key_limit,
              clock_timestamp() + p_ttl_ms * interval '1 ms', t.request_id
            from unnest(p_hold_ids, p_hold_amounts, p_hold_keys, p_hold_limits, p_hold_requests)
              as t(id, amount, key_id, key_limit, request_id)
          on conflict (id) do nothing
          returning id, amount, key_id
      ), spent as (
        insert into key_spend as k (key_id, account_id, held)
          select key_id, p_account, sum(amount) from made where key_id is not null group by key_id
          on conflict (key_id) do update set held = k.held + excluded.held
      ) select count(*), coalesce(sum(amount), 0), array_agg(id) into v_count, v_sum, v_ids from made;
      if v_count < cardinality(p_hold_ids) then
        select string_agg(case
              when h.account_id <> p_account or h.state <> 1 then 'c'
              when h.id = any(v_ids) then 'a' else 'd' end, ',' order by t.n)
          into hold_verdicts
          from unnest(p_hold_ids) with ordinality as t(id, n) join hold h on h.id = t.id;
      end if;
    else
      select a.verdicts, a.made into hold_verdicts, v_sum
        from ledger_admit(p_account, p_node, p_hold_ids, p_hold_amounts, p_hold_keys, p_hold_limits,
          p_ttl_ms, v_available, p_hold_requests) a;
    end if;
    v_available := v_available - v_sum;
    v_held := v_held + v_sum;
  end if;

  update balance b set available = v_available, held = v_held where b.account_id = p_account;
  if v_before >= v_low and v_available + v_held < v_low then
    low_balance := v_available + v_held;
  end if;
end $$`;

/** What programs of the version before this one call while both run, and what sweeps. */
const applyBefore = `
create or replace function ledger_apply(
  p_account uuid, p_node uuid, p_node_name text,
  p_settle_ids uuid[], p_settle_costs bigint[], p_vendor_costs bigint[], p_calls json,
  p_extend_ids uuid[], p_extend_amounts bigint[], p_checkpoints json,
  p_hold_ids uuid[], p_hold_amounts bigint[], p_hold_keys uuid[], p_hold_limits bigint[],
  p_ttl_ms integer,
  out settle_verdicts text, out extend_verdicts text, out hold_verdicts text, out low_balance bigint
) language sql as $$
  select a.settle_verdicts, a.extend_verdicts, a.hold_verdicts, a.low_balance from ledger_apply(
    p_account, p_node, p_node_name, p_settle_ids, p_settle_costs, p_vendor_costs, p_calls,
    p_extend_ids, p_extend_amounts, p_checkpoints, p_hold_ids, p_hold_amounts, p_hold_keys, p_hold_limits,
    p_ttl_ms, null) a
$$`;

/** The records of lost calls, as before (see 0005-money-sweep.ts): one without a checkpoint has its hold's request id. */
const lostCalls = `
create or replace function ledger_lost_calls(p_ids uuid[], p_bare boolean) returns json
language sql ${planSettings} as $$
  select json_agg(
      case when p_bare or c.record is null then jsonb_build_object(
        'request_id', coalesce(h.request_id, ''), 'key_id', coalesce(h.key_id::text, ''), 'model', '', 'vendor', '',
        'path', '', 'stream', false, 'status', 0, 'error_code', '', 'usage_source', 0,
        'input_tokens', 0, 'cached_input_tokens', 0, 'cache_write_tokens', 0, 'output_tokens', 0,
        'reasoning_tokens', 0, 'price_version', '', 'first_byte_ms', 0, 'upstream_request_id', '',
        'dropped', '',
        'start_time', t.start_time,
        'duration_ms', greatest(0, least(2147483647,
          floor(extract(epoch from clock_timestamp() - t.start_time) * 1000))))
      else c.record::jsonb end
      || jsonb_build_object('id', h.id, 'account_id', h.account_id, 'ending', 9,
        'held', h.amount::text, 'cost', coalesce(c.cost, 0)::text))
    from hold h left join hold_checkpoint c on c.hold_id = h.id
      cross join lateral (select to_timestamp(
        ('x' || left(replace(h.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) as start_time) t
    where h.id = any(p_ids)
$$`;

/** Adds them. */
export class HoldRequest0021 extends Migration {
  override up(): void {
    for (const statement of [hold, admit, apply, applyBefore, lostCalls]) this.addSql(statement);
  }
}
