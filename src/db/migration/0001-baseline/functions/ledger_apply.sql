-- Moves the money of calls: one batch of one account. Settlements first, then extensions of holds,
-- then new holds, each in their order: money that becomes free in the batch can be spent in it.
--
-- SQL, because the batch must be one round trip and one transaction: under load an account has
-- thousands of calls per second, and each waits until the one before it releases the balance row.
--
-- Idempotent by the ids of the holds, so that a batch with an unknown outcome is sent again. Arrays
-- without members may be null.
--
-- Locks, in this order: the account's balance row, its holds, its keys (key_spend), the hourly sums
-- (usage_hour), its budgets. Every function that moves money keeps this order.
--
-- Budgets (ledger_budget_*): only if the account has some (balance.budget_time is not null), v_now
-- is the time with which this batch counts. Other accounts need one comparison for each kind of
-- operation.
--
-- Parameters
--   p_node, p_node_name   The process. The name is sent until the database has answered the process
--                         once: its row is then written with its first holds, so that every hold
--                         belongs to a process that can be found dead.
--   p_settle_ids, p_settle_costs, p_vendor_costs
--                         The holds to end, the cost of each call, and the vendor's charge (null:
--                         unknown or zero). Cheapest in the order of the ids.
--   p_kinds               The common parts of call records: rows of call_kind as a JSON array, or
--                         as an object if all share it. Null: the batch has no records.
--   p_kind                For each settlement the position of its record in p_kinds, from 1; 0: no
--                         record. Null: all use the first.
--   p_sums                The sums of the records of each kind: see ledger_usage.
--   p_request_id to p_start_time
--                         The individual parts of each record, as one array per column. A null
--                         array of numbers means 0 throughout. Arrays are read in a third of
--                         the time of JSON. Measured per call, with 120 operations a batch: 51 us
--                         with its record as JSON, 55 us as jsonb, 49 us as an array of rows, and
--                         32 us without one.
--   p_extend_ids, p_extend_amounts, p_checkpoints
--                         See ledger_extend.
--   p_hold_ids, p_hold_amounts, p_hold_keys, p_hold_limits, p_hold_requests
--                         The holds to make, with key, the key's limit and the request id.
--                         p_hold_keys may have one member, for all holds.
--   p_ttl_ms              Time after which a hold without renewal expires.
--   p_fresh               The batch is sent for the first time: neither its holds nor its records
--                         exist. If one does, a unique constraint fails and the batch is sent again
--                         without p_fresh. `on conflict` would cost a lock and a WAL record per
--                         row.
--   p_expired             True: the holds are ended for their process. Null: they are not.
--
-- Results. Null if every operation had the ordinary result, otherwise one verdict per operation,
-- comma separated.
--   settle_verdicts       s settled; a already settled before; u unknown
--   extend_verdicts       the amount now held; c closed
--   hold_verdicts         a admitted; d already held; b either, if the account has budgets; c
--   closed;
--                         the available amount if that is too small; available/remaining if the
--                         key's limit is too small; available and ledger_budget_short, with |
--                         between, if a budget is too small
--   low_balance           the balance, if this batch reduced it below the account's threshold
--   platform_loss         the unpaid part of these settlements, if more than 0
--
-- A settlement uses its hold first. A cost above the hold is paid, in the order of ids, from the
-- available balance and the money that the batch frees. The rest is platform_loss (account 6). The
-- vendor's cost is booked separately (accounts 7 and 8). A hold of a call without a cost becomes a
-- row of released_hold instead of a charge. Settlements without an open hold (repeated, late, never
-- made) are passed to ledger_settle_odd.
--
-- Plans. The settings prevent a plan that was made on an empty table from staying a sequential
-- scan. If there is no other plan, the prohibitive cost would start the JIT compiler (300 ms). Open
-- holds are found in the order of their ids. If the caller sorts the settlements in that order, no
-- join is needed.
create or replace function ledger_apply(
  p_account uuid, p_node uuid = null, p_node_name text = null,
  p_settle_ids uuid[] = null, p_settle_costs bigint[] = null, p_vendor_costs bigint[] = null,
  p_kinds json = null, p_kind integer[] = null, p_sums bigint[] = null,
  p_request_id text[] = null, p_upstream_request_id text[] = null,
  p_input_tokens integer[] = null, p_cached_input_tokens integer[] = null,
  p_cache_write_tokens integer[] = null, p_output_tokens integer[] = null,
  p_reasoning_tokens integer[] = null, p_held bigint[] = null, p_duration_ms integer[] = null,
  p_first_byte_ms integer[] = null, p_start_time timestamptz[] = null,
  p_extend_ids uuid[] = null, p_extend_amounts bigint[] = null, p_checkpoints json = null,
  p_hold_ids uuid[] = null, p_hold_amounts bigint[] = null, p_hold_keys uuid[] = null,
  p_hold_limits bigint[] = null, p_ttl_ms integer = null, p_hold_requests text[] = null,
  p_fresh boolean = false, p_expired boolean = null,
  out settle_verdicts text, out extend_verdicts text, out hold_verdicts text,
  out low_balance bigint, out platform_loss bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_available bigint;
  v_held bigint;
  v_low bigint;
  v_before bigint;
  v_balance bigint;
  v_balances bigint[];
  v_count integer;
  v_sum bigint;
  v_paid bigint;
  v_cost bigint;
  v_ids uuid[];
  v_costs bigint[];
  v_released bigint[];
  v_paids bigint[];
  v_vendors bigint[];
  v_keys uuid[];
  v_steps integer[];
  v_times timestamptz[];
  v_kind call_kind;
  v_kinds call_kind[];
  v_zeros integer[];
  v_key_spent bigint;
  v_key_released bigint;
  v_checkpointed boolean;
  v_is_watched boolean;
  v_is_rare boolean;
  v_has_free boolean;
  v_is_newer boolean;
  v_is_whole boolean;
  v_is_one_key boolean;
  v_made bigint;
  v_size integer;
  v_now timestamptz;
  v_expiry timestamptz;
  v_newest uuid;
  v_seq bigint;
  v_key uuid;
begin
  -- PL/pgSQL prepares each expression again for each batch (5,000 instructions), so the statements
  -- compute as much as possible.
  loop
    select b.available, b.held, b.available + b.held, b.low_below, b.budget_time, cardinality(p_hold_ids),
        case when cardinality(p_hold_keys) = 1 then p_hold_keys[1] end,
        case when p_hold_ids[cardinality(p_hold_ids)] >= all(p_hold_ids)
          then greatest(b.newest_hold, p_hold_ids[cardinality(p_hold_ids)]) else b.newest_hold end,
        coalesce(b.newest_hold < all(p_hold_ids), true)
          and p_hold_ids[cardinality(p_hold_ids)] >= all(p_hold_ids),
        -- Checked here, not by constraints of the tables: each would be parsed again by every
        -- batch.
        b.budget_time is not null or p_node_name is not null
          or 0 > any(p_settle_costs) or 0 > any(p_hold_amounts),
        0 = any(p_settle_costs) and p_expired is null,
        exists (select from call_watch w where w.expire_time > clock_timestamp())
      into v_available, v_held, v_before, v_low, v_now, v_size, v_key, v_newest, v_is_newer, v_is_rare,
        v_has_free, v_is_watched
      from balance b where b.account_id = p_account for update;
    exit when found;
    insert into balance (account_id) values (p_account) on conflict do nothing;
  end loop;
  if v_is_rare then
    if 0 > any(p_settle_costs) or 0 > any(p_hold_amounts) then
      raise exception 'a cost or a hold is negative' using errcode = 'check_violation';
    end if;
    if p_node_name is not null then
      insert into node (id, name) values (p_node, p_node_name) on conflict do nothing;
    end if;
    if v_now is not null then v_now := ledger_budget_roll(p_account, v_now); end if;
  end if;

  if cardinality(p_settle_ids) > 0 then
    with ended as (
      delete from open_hold h where h.id = any(p_settle_ids) and h.account_id = p_account
        returning h.id, h.amount, h.key_id, h.checkpointed, h.steps, h.budget_time
    )
    -- One number for the batch: one for each entry would take 2 us each.
    select nextval('ledger_entry_seq'), coalesce(ledger_sum(amount), 0), array_agg(id), array_agg(amount),
        array_agg(key_id), array_agg(steps), array_agg(budget_time), coalesce(cardinality(array_agg(id)), 0),
        coalesce(array_agg(id) = p_settle_ids, false), (array_agg(key_id))[1] = all(array_agg(key_id)),
        bool_or(checkpointed), p_settle_costs, p_vendor_costs
      into v_seq, v_sum, v_ids, v_released, v_keys, v_steps, v_times, v_count, v_is_whole, v_is_one_key,
        v_checkpointed, v_costs, v_vendors
      from ended;
    if not v_is_whole then
      -- Other holds have ended too, or the order differs: selects the values of the holds that have
      -- ended now.
      select array_agg(s.cost order by e.n), array_agg(s.vendor order by e.n)
        into v_costs, v_vendors
        from unnest(v_ids) with ordinality as e(id, n)
          cross join lateral (select s.cost, s.vendor
            from unnest(p_settle_ids, p_settle_costs, p_vendor_costs) as s(id, cost, vendor)
            where s.id = e.id limit 1) s;
    end if;
    -- A loop, because a query takes longer to start than a hundred iterations.
    v_balance := v_before;
    v_balances := v_costs;
    for i in 1..v_count loop
      v_balance := v_balance - v_costs[i];
      v_balances[i] := v_balance;
    end loop;
    v_cost := v_before - v_balance;
    v_paid := v_cost;
    if v_cost > v_available then
      -- Each call is paid from its hold, then from the rest of the pool, in the order of ids.
      select array_agg(paid order by n), array_agg(v_before - spent order by n), coalesce(max(spent), 0)
        into v_paids, v_balances, v_paid
        from (
          select n, paid, ledger_sum(paid) over (order by n) as spent
            from (
              select n, cost - least(excess, greatest(-remaining, 0)) as paid
                from (
                  select n, cost, greatest(cost - released, 0) as excess,
                      v_available + ledger_sum(greatest(released - cost, 0)) over ()
                        - ledger_sum(greatest(cost - released, 0)) over (order by n) as remaining
                    from unnest(v_costs, v_released) with ordinality as t(cost, released, n)
                ) pooled
            ) paid
        ) summed;
      platform_loss := nullif(v_cost - v_paid, 0);
    end if;
    if v_has_free then
      insert into released_hold (id, account_id, seq, held, key_id, steps)
        select id, p_account, v_seq, held, key_id, steps
          from unnest(v_ids, v_costs, v_vendors, v_released, v_keys, v_steps)
            as t(id, cost, vendor_cost, held, key_id, steps)
          where cost = 0 and coalesce(vendor_cost, 0) = 0;
      insert into ledger_charge (id, account_id, create_time, seq, cost, paid, balance_after, vendor_cost, held,
          key_id, steps, budget_time)
        select id, p_account, now(), v_seq, cost, paid, balance_after, vendor_cost, held, key_id, steps, budget_time
          from unnest(v_ids, v_costs, coalesce(v_paids, v_costs), v_balances, v_vendors, v_released, v_keys,
              v_steps, v_times)
            as t(id, cost, paid, balance_after, vendor_cost, held, key_id, steps, budget_time)
          where cost > 0 or vendor_cost > 0;
    else
      -- All columns in their order: PostgreSQL then needs no second step that puts them there.
      insert into ledger_charge (id, account_id, create_time, seq, cost, paid, balance_after, vendor_cost, held,
          key_id, steps, budget_time, expired)
        select unnest(v_ids), p_account, now(), v_seq, unnest(v_costs), unnest(coalesce(v_paids, v_costs)),
          unnest(v_balances), unnest(v_vendors), unnest(v_released), unnest(v_keys), unnest(v_steps),
          unnest(v_times), p_expired;
    end if;
    v_available := v_available + v_sum - v_paid;
    v_held := v_held - v_sum;

    -- One key for all: its sums are written with those of the new holds, if no statement reads them
    -- earlier.
    if v_is_one_key and v_keys[1] = v_key and p_fresh and p_hold_limits is null
      and p_extend_ids is null and v_now is null
    then
      v_key_spent := v_cost;
      v_key_released := v_sum;
    elsif v_is_one_key then
      update key_spend k set spent = k.spent + v_cost, held = k.held - v_sum
        where k.key_id = v_keys[1];
    elsif v_count > 0 then
      update key_spend k set spent = k.spent + s.cost, held = k.held - s.released
        from (select key_id, ledger_sum(cost) as cost, ledger_sum(released) as released
          from unnest(v_keys, v_costs, v_released) as t(key_id, cost, released)
          where key_id is not null group by key_id) s
        where k.key_id = s.key_id;
    end if;
    if v_now is not null then
      perform ledger_budget_count(p_account, v_keys, v_times, v_costs, v_released, -1);
    end if;
    if v_checkpointed then delete from hold_checkpoint where hold_id = any(v_ids); end if;
    if not v_is_whole and v_count < cardinality(p_settle_ids) then
      select o.verdicts, o.available, o.newest,
          nullif(coalesce(ledger_apply.platform_loss, 0) + coalesce(o.platform_loss, 0), 0)
        into settle_verdicts, v_available, v_newest, platform_loss
        from ledger_settle_odd(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
          case when p_kinds is not null then (select json_agg(r)
            from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
              ledger_call_kinds(p_kinds), p_kind, p_request_id, p_upstream_request_id, p_input_tokens,
              p_cached_input_tokens, p_cache_write_tokens, p_output_tokens, p_reasoning_tokens, p_held,
              p_duration_ms, p_first_byte_ms, p_start_time) r) end,
          v_ids, v_available, v_held, v_seq, v_newest) o;
      -- It may have ended holds that this batch is about to make.
      v_is_newer := false;
    elsif p_kinds is not null and p_fresh then
      if p_kind is null and json_typeof(p_kinds) = 'object' then
        -- As ledger_call_rows, for calls of one kind: a plan without a join starts in half the
        -- time.
        v_kind := json_populate_record(null::call_kind, p_kinds);
        v_zeros := array_fill(0, array[v_count]);
        insert into call
          select unnest(p_settle_ids), p_account, unnest(p_request_id), unnest(p_upstream_request_id),
            unnest(coalesce(p_input_tokens, v_zeros)),
            unnest(coalesce(p_cached_input_tokens, v_zeros)),
            unnest(coalesce(p_cache_write_tokens, v_zeros)), unnest(coalesce(p_output_tokens, v_zeros)),
            unnest(coalesce(p_reasoning_tokens, v_zeros)), unnest(p_settle_costs), unnest(p_held),
            unnest(p_start_time), unnest(coalesce(p_duration_ms, v_zeros)),
            unnest(coalesce(p_first_byte_ms, v_zeros)), unnest(p_vendor_costs), (v_kind).*;
        update usage_hour u set calls = u.calls + p_sums[2],
            failed_calls = u.failed_calls + case when v_kind.ending in (1, 5, 10) then 0 else p_sums[2] end,
            input_tokens = u.input_tokens + p_sums[3],
            cached_input_tokens = u.cached_input_tokens + p_sums[4],
            cache_write_tokens = u.cache_write_tokens + p_sums[5],
            output_tokens = u.output_tokens + p_sums[6],
            reasoning_tokens = u.reasoning_tokens + p_sums[7],
            images = u.images + coalesce(v_kind.images, 0) * p_sums[2],
            second_micros = u.second_micros + coalesce(v_kind.second_micros, 0) * p_sums[2],
            cost = u.cost + p_sums[8], vendor_cost = u.vendor_cost + p_sums[9]
          where u.account_id = p_account and u.hour = to_timestamp(p_sums[1] * 3600)
            and u.key_id = v_kind.key_id and u.model = v_kind.model and u.vendor = v_kind.vendor;
        if not found then perform ledger_usage(p_account, array[v_kind], p_sums); end if;
      else
        v_kinds := ledger_call_kinds(p_kinds);
        insert into call
          select * from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
            v_kinds, p_kind, p_request_id, p_upstream_request_id, p_input_tokens,
            p_cached_input_tokens, p_cache_write_tokens, p_output_tokens, p_reasoning_tokens,
            p_held, p_duration_ms, p_first_byte_ms, p_start_time);
        perform ledger_usage(p_account, v_kinds, p_sums);
      end if;
      if v_is_watched then
        perform call_notice(array_fill(p_account, array[v_count]), array(select t.id
          from unnest(p_settle_ids, p_kind) as t(id, kind) where t.kind is distinct from 0));
      end if;
    elsif p_kinds is not null then
      perform call_write((select json_agg(r)
        from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
          ledger_call_kinds(p_kinds), p_kind, p_request_id, p_upstream_request_id, p_input_tokens,
          p_cached_input_tokens, p_cache_write_tokens, p_output_tokens, p_reasoning_tokens, p_held,
          p_duration_ms, p_first_byte_ms, p_start_time) r));
    end if;
  end if;

  if cardinality(p_extend_ids) > 0 then
    select e.verdicts, e.grown into extend_verdicts, v_sum
      from ledger_extend(p_account, p_extend_ids, p_extend_amounts, p_checkpoints, v_available,
        v_now) e;
    v_available := v_available - v_sum;
    v_held := v_held + v_sum;
  end if;

  if v_size > 0 then
    v_keys := case when v_key is null then p_hold_keys else array_fill(v_key, array[v_size]) end;
    v_made := 0;
    foreach v_sum in array p_hold_amounts loop v_made := v_made + v_sum; end loop;
    if v_made <= v_available
      and (p_hold_limits is null or ledger_keys_fit(p_hold_keys, p_hold_amounts, p_hold_limits))
      and (v_now is null or ledger_budget_fits(p_account, v_key, p_hold_keys, p_hold_amounts))
    then
      v_expiry := clock_timestamp() + p_ttl_ms * interval '1 ms';
      if p_fresh then
        -- A hold that is newer than all holds of its account cannot have ended yet: no search is
        -- needed.
        if not v_is_newer then
          if exists (select from ended_hold e where e.account_id = p_account and e.id = any(p_hold_ids)) then
            raise exception 'a hold has ended already' using errcode = 'unique_violation';
          end if;
        end if;
        insert into open_hold (id, account_id, amount, expires_at, node_id, key_id, key_limit, steps,
            checkpointed, request_id, budget_time)
          select unnest(p_hold_ids), p_account, unnest(p_hold_amounts), v_expiry, p_node, unnest(v_keys),
            unnest(p_hold_limits), null::integer, null::boolean, unnest(p_hold_requests), v_now;
        if v_key is not null then
          update key_spend k set held = k.held + v_made - coalesce(v_key_released, 0),
              spent = k.spent + coalesce(v_key_spent, 0) where k.key_id = v_key;
          if not found then
            insert into key_spend (key_id, account_id, held) values (v_key, p_account, v_made);
          end if;
          v_key_spent := null;
        elsif p_hold_keys is not null then
          insert into key_spend as k (key_id, account_id, held)
            select t.key_id, p_account, ledger_sum(t.amount)
              from unnest(p_hold_keys, p_hold_amounts) as t(key_id, amount)
              where t.key_id is not null group by t.key_id
            on conflict (key_id) do update set held = k.held + excluded.held;
        end if;
        if v_now is not null then
          perform ledger_budget_count(p_account, v_keys, array_fill(v_now, array[v_size]), null,
            p_hold_amounts, 1);
        end if;
      else
        with made as (
          insert into open_hold
              (id, account_id, amount, node_id, key_id, key_limit, expires_at, request_id,
              budget_time)
            select t.id, p_account, t.amount, p_node, t.key_id, t.key_limit, v_expiry, t.request_id, v_now
              from unnest(p_hold_ids, p_hold_amounts, v_keys, p_hold_limits, p_hold_requests)
                as t(id, amount, key_id, key_limit, request_id)
              where not exists (select from ended_hold e
                where e.account_id = p_account and e.id = t.id)
            on conflict (id) do nothing
            returning id, amount, key_id
        ), spent as (
          insert into key_spend as k (key_id, account_id, held)
            select key_id, p_account, ledger_sum(amount) from made
              where key_id is not null group by key_id
            on conflict (key_id) do update set held = k.held + excluded.held
        )
        select count(*), coalesce(ledger_sum(amount), 0), array_agg(id), array_agg(key_id), array_agg(amount)
          into v_count, v_made, v_ids, v_keys, v_released from made;
        if v_count < v_size then
          select string_agg(case
                when h.id is null then 'c'
                when v_now is not null then 'b'
                when h.id = any(v_ids) then 'a' else 'd' end, ',' order by t.n)
            into hold_verdicts
            from unnest(p_hold_ids) with ordinality as t(id, n)
              left join open_hold h on h.id = t.id and h.account_id = p_account;
        end if;
        if v_now is not null then
          perform ledger_budget_count(p_account, v_keys, array_fill(v_now, array[v_count]), null,
            v_released, 1);
        end if;
      end if;
      if v_now is not null then
        hold_verdicts := coalesce(hold_verdicts,
          array_to_string(array_fill('b'::text, array[v_size]), ','));
      end if;
    else
      select a.verdicts, a.made into hold_verdicts, v_made
        from ledger_admit(p_account, p_node, p_hold_ids, p_hold_amounts, v_keys, p_hold_limits, p_ttl_ms,
          v_available, p_hold_requests, v_now) a;
    end if;
    if not v_is_newer then v_newest := ledger_newest(v_newest, p_hold_ids); end if;
    v_available := v_available - v_made;
    v_held := v_held + v_made;
  end if;

  if v_key_spent is not null then
    update key_spend k set spent = k.spent + v_key_spent, held = k.held - v_key_released
      where k.key_id = v_key;
  end if;
  update balance b set available = v_available, held = v_held, budget_time = v_now, newest_hold = v_newest
    where b.account_id = p_account;
  if v_before >= v_low and v_available + v_held < v_low then
    low_balance := v_available + v_held;
    perform alert_low_balance(p_account, low_balance, v_low);
  end if;
end $$;
