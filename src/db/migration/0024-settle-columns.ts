/** Cheaper settlements: call records come as columns, and the hourly sums are written by the statement that writes them. */
import { Migration } from "@mikro-orm/migrations";
import { planSettings } from "./0005-money-apply.ts";
import { callNames, callParameters, callRows } from "./0024-call-columns.ts";

/** Set while a function counts and tells of the calls itself. */
const counted = "uas.call_counted";

const sums: Readonly<Record<string, string>> = {
  calls: "count(*)",
  failed_calls: "count(*) filter (where ending not in (1, 5, 10))",
  input_tokens: "sum(input_tokens)",
  cached_input_tokens: "sum(cached_input_tokens)",
  cache_write_tokens: "sum(cache_write_tokens)",
  output_tokens: "sum(output_tokens)",
  reasoning_tokens: "sum(reasoning_tokens)",
  images: "coalesce(sum(images), 0)",
  second_micros: "coalesce(ledger_sum(second_micros), 0)",
  cost: "ledger_sum(cost)",
  vendor_cost: "coalesce(ledger_sum(vendor_cost), 0)",
};
const sumNames = Object.keys(sums);

/** Writes the records and their sums. */
const writeCalls = (onConflict: string): string => `
        with written as (
          insert into call (${callNames}) ${callRows}
            ${onConflict}
            returning id, key_id, model, ending, input_tokens, cached_input_tokens, cache_write_tokens,
              output_tokens, reasoning_tokens, images, second_micros, cost, vendor_cost
        )
        insert into usage_hour as u (account_id, hour, key_id, model, ${sumNames.join(", ")})
          select p_account, uuid_hour(id), key_id, model, ${Object.values(sums).join(", ")}
            from written group by 2, 3, 4 order by 2, 3, 4
          on conflict (account_id, hour, key_id, model) do update set
            ${sumNames.map((name) => `${name} = u.${name} + excluded.${name}`).join(", ")};`;

/** What a charge takes where the balance covers all costs of the batch, whatever was held for them. */
const paidWhole = `priced as (
      select id, cost, vendor, released, checkpointed, cost as paid from ended`;

/** What it takes where it may not: its own hold, then from the pool, in the order of ids. */
const paidFromPool = `pooled as (
      select id, cost, vendor, released, checkpointed, greatest(cost - released, 0) as excess,
          v_available + ledger_sum(greatest(released - cost, 0)) over ()
            - ledger_sum(greatest(cost - released, 0)) over (order by id) as remaining
        from ended
    ), priced as (
      select id, cost, vendor, released, checkpointed,
          cost - least(excess, greatest(-remaining, 0))::bigint as paid
        from pooled`;

/** Ends holds, and writes their charges. */
const endHolds = (priced: string): string => `
    with ended as (
      update hold h
        set state = case when s.cost > 0 then 2 else 3 end, settled = s.cost, request_id = null
        from (select unnest(p_settle_ids) as id, unnest(p_settle_costs) as cost,
          unnest(p_vendor_costs) as vendor) s
        where h.id = s.id and h.account_id = p_account and h.state + 0 = 1
        returning h.id, s.cost, s.vendor, h.amount as released, h.key_id, h.checkpointed
    ), ${priced}
    ), spent as (
      update key_spend k set spent = k.spent + s.cost, held = k.held - s.released
        from (select key_id, ledger_sum(cost)::bigint as cost, ledger_sum(released)::bigint as released
          from ended where key_id is not null group by key_id) s
        where k.key_id = s.key_id
    ), entries as (
      insert into ledger_entry (txn_id, account, account_id, kind, amount, balance_after)
        select id, 1, p_account, 2, -paid, v_before - ledger_sum(paid) over (order by id)
          from priced where paid > 0
        union all select id, 2, p_account, 2, cost, null from priced where cost > 0
        union all select p.id, e.account, p_account, 2, e.amount, null
          from priced p cross join lateral
            (values (6, p.paid - p.cost), (7, -p.vendor), (8, p.vendor)) as e(account, amount)
          where (p.paid < p.cost or p.vendor <> 0) and e.amount <> 0
    )
    select count(*), coalesce(ledger_sum(released), 0), coalesce(ledger_sum(paid), 0), array_agg(id),
        bool_or(checkpointed)
      into v_count, v_sum, v_paid, v_ids, v_checkpointed from priced;`;

/** With what all settlements cost and all holds ask for: a statement for each sum would cost more than both. */
const lockBalance = `
  select b.available, b.held, b.low_below, (select ledger_sum(cost) from unnest(p_settle_costs) as cost),
      (select ledger_sum(amount) from unnest(p_hold_amounts) as amount)
    into v_available, v_held, v_low, v_cost, v_asked from balance b where b.account_id = p_account for update;`;

const holdRows = `
          select t.id, p_account, t.amount, p_node, coalesce(t.key_id, v_key), t.key_limit,
              clock_timestamp() + p_ttl_ms * interval '1 ms', t.request_id
            from unnest(p_hold_ids, p_hold_amounts, p_hold_keys, p_hold_limits, p_hold_requests)
              as t(id, amount, key_id, key_limit, request_id)`;

/**
 * As before (see 0005-money-apply.ts and 0021-hold-request.ts), but for:
 *
 * - The call records come as columns (see 0024-call-columns.ts); p_kinds is null where there are none.
 * - p_hold_keys may have one member, for all holds.
 * - p_fresh: the batch is sent for the first time, so that neither its holds nor its records should be there. One that
 *   is breaks a unique constraint, and the batch is sent again without p_fresh. Asking first, by `on conflict`, takes a
 *   lock and a record of the WAL for each row.
 */
const apply = `
create function ledger_apply(
  p_account uuid, p_node uuid, p_node_name text,
  p_settle_ids uuid[], p_settle_costs bigint[], p_vendor_costs bigint[], ${callParameters},
  p_extend_ids uuid[], p_extend_amounts bigint[], p_checkpoints json,
  p_hold_ids uuid[], p_hold_amounts bigint[], p_hold_keys uuid[], p_hold_limits bigint[],
  p_ttl_ms integer, p_hold_requests text[], p_fresh boolean,
  out settle_verdicts text, out extend_verdicts text, out hold_verdicts text, out low_balance bigint
) language plpgsql ${planSettings} set ${counted} = 'on'
as $$
declare
  v_available bigint;
  v_held bigint;
  v_low bigint;
  v_before bigint;
  v_count integer;
  v_sum bigint;
  v_paid bigint;
  v_cost bigint;
  v_asked bigint;
  v_ids uuid[];
  v_checkpointed boolean;
  v_key uuid := case when cardinality(p_hold_keys) = 1 then p_hold_keys[1] end;
begin
  ${lockBalance}
  if not found then
    insert into balance (account_id) values (p_account) on conflict do nothing;
    ${lockBalance}
  end if;
  v_before := v_available + v_held;
  if p_node_name is not null then
    insert into node (id, name) values (p_node, p_node_name) on conflict do nothing;
  end if;

  if cardinality(p_settle_ids) > 0 then
    if v_cost <= v_available then ${endHolds(paidWhole)}
    else ${endHolds(paidFromPool)}
    end if;
    v_available := v_available + v_sum - v_paid;
    v_held := v_held - v_sum;

    if v_checkpointed then delete from hold_checkpoint where hold_id = any(v_ids); end if;
    if v_count = cardinality(p_settle_ids) then
      if p_kinds is not null then
        if p_fresh then ${writeCalls("")}
        else ${writeCalls("on conflict (id) do nothing")}
        end if;
        if exists (select from call_watch w where w.expire_time > clock_timestamp()) then
          perform call_tell_ids(p_account, p_settle_ids, p_kind);
        end if;
      end if;
    else
      select o.verdicts, o.available into settle_verdicts, v_available
        from ledger_settle_odd(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
          case when p_kinds is not null then (select json_agg(r) from (${callRows}) r) end,
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
    v_sum := v_asked;
    if v_sum <= v_available
      and (p_hold_limits is null or ledger_keys_fit(p_hold_keys, p_hold_amounts, p_hold_limits))
    then
      if p_fresh then
        insert into hold (id, account_id, amount, node_id, key_id, key_limit, expires_at, request_id) ${holdRows};
        if v_key is not null then
          insert into key_spend as k (key_id, account_id, held) values (v_key, p_account, v_sum)
            on conflict (key_id) do update set held = k.held + excluded.held;
        elsif p_hold_keys is not null then
          insert into key_spend as k (key_id, account_id, held)
            select t.key_id, p_account, ledger_sum(t.amount)
              from unnest(p_hold_keys, p_hold_amounts) as t(key_id, amount)
              where t.key_id is not null group by t.key_id
            on conflict (key_id) do update set held = k.held + excluded.held;
        end if;
      else
        with made as (
          insert into hold (id, account_id, amount, node_id, key_id, key_limit, expires_at, request_id)
            ${holdRows}
            on conflict (id) do nothing
            returning id, amount, key_id
        ), spent as (
          insert into key_spend as k (key_id, account_id, held)
            select key_id, p_account, ledger_sum(amount) from made where key_id is not null group by key_id
            on conflict (key_id) do update set held = k.held + excluded.held
        ) select count(*), coalesce(ledger_sum(amount), 0), array_agg(id) into v_count, v_sum, v_ids from made;
        if v_count < cardinality(p_hold_ids) then
          select string_agg(case
                when h.account_id <> p_account or h.state <> 1 then 'c'
                when h.id = any(v_ids) then 'a' else 'd' end, ',' order by t.n)
            into hold_verdicts
            from unnest(p_hold_ids) with ordinality as t(id, n) join hold h on h.id = t.id;
        end if;
      end if;
    else
      select a.verdicts, a.made into hold_verdicts, v_sum
        from ledger_admit(p_account, p_node, p_hold_ids, p_hold_amounts,
          case when v_key is null then p_hold_keys else array_fill(v_key, array[cardinality(p_hold_ids)]) end,
          p_hold_limits, p_ttl_ms, v_available, p_hold_requests) a;
    end if;
    v_available := v_available - v_sum;
    v_held := v_held + v_sum;
  end if;

  update balance b set available = v_available, held = v_held where b.account_id = p_account;
  if v_before >= v_low and v_available + v_held < v_low then
    low_balance := v_available + v_held;
  end if;
end $$`;

/** A sum of amounts that is an amount: PostgreSQL's own sum of `bigint` is `numeric`, whose arithmetic takes ten times as long. */
const sum = `
create aggregate ledger_sum(bigint) (sfunc = int8pl, stype = bigint, parallel = safe, combinefunc = int8pl)`;

/** What `call_tell` tells (see 0019-console-calls.ts), for who writes without it. */
const tell = `
create function call_tell_ids(p_account uuid, p_ids uuid[], p_kind integer[]) returns void language plpgsql as $$
begin
  if exists (select from call_watch w where w.expire_time > clock_timestamp()) then
    perform pg_notify('call_written', concat_ws(' ', p_account, count(*),
        array_to_string((array_agg(c.id order by c.id desc))[1:200], ' ')))
      from unnest(p_ids, p_kind) as c(id, kind)
      where c.kind is distinct from 0 and exists (select from call_watch w where w.expire_time > clock_timestamp()
        and w.account_id in (p_account, '00000000-0000-0000-0000-000000000000'))
      having count(*) > 0;
  end if;
end $$`;

/** Renews holds, as programs of the version before this one do by a statement of their own. Returns how many. */
const renew = `
create function ledger_renew(p_ids uuid[], p_ttl_ms integer) returns integer language sql ${planSettings} as $$
  with live as (
    select id from hold where id = any(p_ids) and state + 0 = 1 order by id for update skip locked
  ), renewed as (
    update hold h set expires_at = clock_timestamp() + p_ttl_ms * interval '1 ms'
      from live where h.id = live.id returning h.id
  ) select count(*)::integer from renewed
$$`;

/**
 * The triggers of an insertion stay for whoever else writes calls: programs of the version before this one, and the records of
 * refused and lost calls.
 */
const triggers = `
drop trigger call_insert_usage on call;
drop trigger call_insert_tell on call;
create trigger call_insert_usage after insert on call
  referencing new table as new_calls for each statement
  when (current_setting('${counted}', true) is distinct from 'on') execute function call_count_usage();
create trigger call_insert_tell after insert on call
  referencing new table as new_calls for each statement
  when (current_setting('${counted}', true) is distinct from 'on') execute function call_tell();
alter function ledger_settle_odd set ${counted} = 'off'`;

/** Adds them. */
export class SettleColumns0024 extends Migration {
  override up(): void {
    for (const statement of [sum, tell, renew, triggers, apply]) this.addSql(statement);
  }
}
