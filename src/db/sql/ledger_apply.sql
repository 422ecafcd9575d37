-- Moves the money of calls: one batch of one account. Settlements first, then extensions of holds,
-- then new holds, each in their order: money that comes free in the batch is spent in it.
--
-- SQL, because the batch must be one round trip and one transaction: under load an account has
-- thousands of calls per second, and each waits for the one before it to release the balance row.
--
-- Idempotent by the ids of the holds, so that a batch whose outcome is unknown is sent again.
-- Arrays without members may be null.
--
-- Locks, in this order: the account's balance row, its holds, its keys (key_spend), the hourly sums
-- (usage_hour), its budgets. Every function that moves money keeps this order.
--
-- Budgets (ledger_budget_*): only where the account has some (balance.budget_time is not null), v_now is
-- the time that this batch counts with. Other accounts pay one comparison for each kind of operation.
--
-- Parameters
--   p_node, p_node_name   The process. The name is given until the database has answered the process
--                         once: its row is then written with its first holds, so that every hold
--                         belongs to a process that can be found dead.
--   p_settle_ids, p_settle_costs, p_vendor_costs
--                         The holds to end, what each call costs, and what it costs us (null: unknown).
--   p_kinds               What several call records have in common: rows of call as JSON. Null: the
--                         batch has no records.
--   p_kind                For each settlement which of p_kinds its record is, from 1; 0: no record.
--                         Null: all are the first.
--   p_request_id to p_start_time
--                         What each record has of its own, as one array per column. A null array of
--                         numbers means 0 throughout. Arrays are read in a third of the time of JSON:
--                         with 120 operations a batch, a call took 51 us with its record as JSON,
--                         55 us as jsonb, 49 us as an array of rows, and 32 us without a record.
--   p_extend_ids, p_extend_amounts, p_checkpoints
--                         See ledger_extend.
--   p_hold_ids, p_hold_amounts, p_hold_keys, p_hold_limits, p_hold_requests
--                         The holds to make, with key, the key's limit and the request id. p_hold_keys
--                         may have one member, for all holds.
--   p_ttl_ms              When a hold that nobody renews expires.
--   p_fresh               The batch is sent for the first time: neither its holds nor its records
--                         exist. Where one does, a unique constraint fails and the batch is sent again
--                         without p_fresh. `on conflict` would take a lock and a WAL record per row.
--
-- Results. Null where everything went the ordinary way, else one verdict per operation, comma separated.
--   settle_verdicts       s settled; a already settled before; u unknown
--   extend_verdicts       the amount now held; c closed
--   hold_verdicts         a admitted; d already held; b either, where the account has budgets; c closed;
--                         the available amount where that is not enough; available/remaining where the
--                         key's limit is not; available and ledger_budget_short, with | between, where
--                         a budget is not
--   low_balance           the balance, where this batch took it below the account's threshold
--   platform_loss         what the account could not pay of these settlements, where that is more than 0
--
-- A settlement takes its own hold first. What exceeds the hold comes, in the order of ids, from what
-- is available and what the batch gives back. What is still short is platform_loss (account 6). The
-- vendor's cost is booked beside it (accounts 7 and 8). Settlements whose hold is not open (repeated,
-- late, never made) go to ledger_settle_odd.
--
-- Plans. The settings keep a plan that was made on an empty table from being a sequential scan for
-- ever; where no other plan exists, the prohibitive cost would start the JIT compiler (300 ms). Open
-- holds known by id are found by `state + 0 = 1`: with `state = 1` the planner takes the partial index
-- of open holds, which on a busy account is full of entries that ended since the last vacuum (16,000
-- of them: 1 ms per batch, and growing).
create or replace function ledger_apply(
  p_account uuid, p_node uuid = null, p_node_name text = null,
  p_settle_ids uuid[] = null, p_settle_costs bigint[] = null, p_vendor_costs bigint[] = null,
  p_kinds json = null, p_kind integer[] = null,
  p_request_id text[] = null, p_upstream_request_id text[] = null,
  p_input_tokens integer[] = null, p_cached_input_tokens integer[] = null,
  p_cache_write_tokens integer[] = null, p_output_tokens integer[] = null,
  p_reasoning_tokens integer[] = null, p_held bigint[] = null, p_duration_ms integer[] = null,
  p_first_byte_ms integer[] = null, p_start_time timestamptz[] = null,
  p_extend_ids uuid[] = null, p_extend_amounts bigint[] = null, p_checkpoints json = null,
  p_hold_ids uuid[] = null, p_hold_amounts bigint[] = null, p_hold_keys uuid[] = null,
  p_hold_limits bigint[] = null, p_ttl_ms integer = null, p_hold_requests text[] = null,
  p_fresh boolean = false,
  out settle_verdicts text, out extend_verdicts text, out hold_verdicts text,
  out low_balance bigint, out platform_loss bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set uas.call_counted = 'on'
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
  v_now timestamptz;
  v_seq bigint;
  v_key uuid := case when cardinality(p_hold_keys) = 1 then p_hold_keys[1] end;
begin
  loop
    -- With what all settlements cost and all holds ask for: a statement for each sum would cost more
    -- than both.
    select b.available, b.held, b.low_below, b.budget_time,
        (select ledger_sum(cost) from unnest(p_settle_costs) as cost),
        (select ledger_sum(amount) from unnest(p_hold_amounts) as amount)
      into v_available, v_held, v_low, v_now, v_cost, v_asked
      from balance b where b.account_id = p_account for update;
    exit when found;
    insert into balance (account_id) values (p_account) on conflict do nothing;
  end loop;
  v_before := v_available + v_held;
  if p_node_name is not null then
    insert into node (id, name) values (p_node, p_node_name) on conflict do nothing;
  end if;

  if v_now is not null then v_now := ledger_budget_roll(p_account, v_now); end if;

  if cardinality(p_settle_ids) > 0 then
    -- One number for the batch: one for each entry would take 2 us each.
    v_seq := nextval('ledger_entry_seq');
    -- Two statements that differ in what is paid only: as one, a batch of one call took 3 % more CPU.
    if v_cost <= v_available then
      -- The balance covers all costs of the batch, whatever was held for them.
      with ended as (
        update hold h
          set state = case when s.cost > 0 then 2 else 3 end, settled = s.cost, request_id = null
          from (select unnest(p_settle_ids) as id, unnest(p_settle_costs) as cost,
            unnest(p_vendor_costs) as vendor) s
          where h.id = s.id and h.account_id = p_account and h.state + 0 = 1
          returning h.id, s.cost, s.vendor, h.amount as released, h.key_id, h.checkpointed
      ), priced as (
        select id, cost, vendor, released, checkpointed, cost as paid from ended
      ), spent as (
        update key_spend k set spent = k.spent + s.cost, held = k.held - s.released
          from (select key_id, ledger_sum(cost) as cost, ledger_sum(released) as released
            from ended where key_id is not null group by key_id) s
          where k.key_id = s.key_id
      ), entries as (
        insert into ledger_entry (txn_id, account, account_id, kind, amount, balance_after, seq)
          select id, 1, p_account, 2, -paid, v_before - ledger_sum(paid) over (order by id),
              v_seq
            from priced where paid > 0
          union all select id, 2, p_account, 2, cost, null, v_seq from priced where cost > 0
          union all select p.id, e.account, p_account, 2, e.amount, null, v_seq
            from priced p cross join lateral
              (values (6, p.paid - p.cost), (7, -p.vendor), (8, p.vendor)) as e(account, amount)
            where (p.paid < p.cost or p.vendor <> 0) and e.amount <> 0
      )
      select count(*), coalesce(ledger_sum(released), 0), coalesce(ledger_sum(paid), 0),
          array_agg(id), bool_or(checkpointed)
        into v_count, v_sum, v_paid, v_ids, v_checkpointed from priced;
    else
      -- Each call is paid by its hold, then by what is left in the pool, in the order of ids.
      with ended as (
        update hold h
          set state = case when s.cost > 0 then 2 else 3 end, settled = s.cost, request_id = null
          from (select unnest(p_settle_ids) as id, unnest(p_settle_costs) as cost,
            unnest(p_vendor_costs) as vendor) s
          where h.id = s.id and h.account_id = p_account and h.state + 0 = 1
          returning h.id, s.cost, s.vendor, h.amount as released, h.key_id, h.checkpointed
      ), pooled as (
        select id, cost, vendor, released, checkpointed, greatest(cost - released, 0) as excess,
            v_available + ledger_sum(greatest(released - cost, 0)) over ()
              - ledger_sum(greatest(cost - released, 0)) over (order by id) as remaining
          from ended
      ), priced as (
        select id, cost, vendor, released, checkpointed,
            cost - least(excess, greatest(-remaining, 0)) as paid
          from pooled
      ), spent as (
        update key_spend k set spent = k.spent + s.cost, held = k.held - s.released
          from (select key_id, ledger_sum(cost) as cost, ledger_sum(released) as released
            from ended where key_id is not null group by key_id) s
          where k.key_id = s.key_id
      ), entries as (
        insert into ledger_entry (txn_id, account, account_id, kind, amount, balance_after, seq)
          select id, 1, p_account, 2, -paid, v_before - ledger_sum(paid) over (order by id),
              v_seq
            from priced where paid > 0
          union all select id, 2, p_account, 2, cost, null, v_seq from priced where cost > 0
          union all select p.id, e.account, p_account, 2, e.amount, null, v_seq
            from priced p cross join lateral
              (values (6, p.paid - p.cost), (7, -p.vendor), (8, p.vendor)) as e(account, amount)
            where (p.paid < p.cost or p.vendor <> 0) and e.amount <> 0
      )
      select count(*), coalesce(ledger_sum(released), 0), coalesce(ledger_sum(paid), 0),
          array_agg(id), bool_or(checkpointed), nullif(ledger_sum(cost - paid), 0)
        into v_count, v_sum, v_paid, v_ids, v_checkpointed, platform_loss from priced;
    end if;
    v_available := v_available + v_sum - v_paid;
    v_held := v_held - v_sum;

    if v_now is not null then perform ledger_budget_settle(v_ids); end if;
    if v_checkpointed then delete from hold_checkpoint where hold_id = any(v_ids); end if;
    if v_count = cardinality(p_settle_ids) then
      if p_kinds is not null then
        -- Two statements that differ in `on conflict` only: see p_fresh.
        if p_fresh then
          with written as (
            insert into call
              select * from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
                p_kinds, p_kind, p_request_id, p_upstream_request_id, p_input_tokens,
                p_cached_input_tokens, p_cache_write_tokens, p_output_tokens, p_reasoning_tokens,
                p_held, p_duration_ms, p_first_byte_ms, p_start_time)
              returning id, key_id, model, vendor, ending, input_tokens, cached_input_tokens,
                cache_write_tokens, output_tokens, reasoning_tokens, images, second_micros, cost,
                vendor_cost
          )
          insert into usage_hour as u (account_id, hour, key_id, model, vendor, calls, failed_calls,
              input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
              images, second_micros, cost, vendor_cost)
            select p_account, uuid_hour(id), key_id, model, vendor, count(*),
                count(*) filter (where ending not in (1, 5, 10)), sum(input_tokens),
                sum(cached_input_tokens), sum(cache_write_tokens), sum(output_tokens),
                sum(reasoning_tokens), coalesce(sum(images), 0),
                coalesce(ledger_sum(second_micros), 0), ledger_sum(cost),
                coalesce(ledger_sum(vendor_cost), 0)
              from written group by 2, 3, 4, 5 order by 2, 3, 4, 5
            on conflict (account_id, hour, key_id, model, vendor) do update set
              calls = u.calls + excluded.calls,
              failed_calls = u.failed_calls + excluded.failed_calls,
              input_tokens = u.input_tokens + excluded.input_tokens,
              cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
              cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
              output_tokens = u.output_tokens + excluded.output_tokens,
              reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
              images = u.images + excluded.images,
              second_micros = u.second_micros + excluded.second_micros,
              cost = u.cost + excluded.cost, vendor_cost = u.vendor_cost + excluded.vendor_cost;
        else
          with written as (
            insert into call
              select * from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
                p_kinds, p_kind, p_request_id, p_upstream_request_id, p_input_tokens,
                p_cached_input_tokens, p_cache_write_tokens, p_output_tokens, p_reasoning_tokens,
                p_held, p_duration_ms, p_first_byte_ms, p_start_time)
              on conflict (id) do nothing
              returning id, key_id, model, vendor, ending, input_tokens, cached_input_tokens,
                cache_write_tokens, output_tokens, reasoning_tokens, images, second_micros, cost,
                vendor_cost
          )
          insert into usage_hour as u (account_id, hour, key_id, model, vendor, calls, failed_calls,
              input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
              images, second_micros, cost, vendor_cost)
            select p_account, uuid_hour(id), key_id, model, vendor, count(*),
                count(*) filter (where ending not in (1, 5, 10)), sum(input_tokens),
                sum(cached_input_tokens), sum(cache_write_tokens), sum(output_tokens),
                sum(reasoning_tokens), coalesce(sum(images), 0),
                coalesce(ledger_sum(second_micros), 0), ledger_sum(cost),
                coalesce(ledger_sum(vendor_cost), 0)
              from written group by 2, 3, 4, 5 order by 2, 3, 4, 5
            on conflict (account_id, hour, key_id, model, vendor) do update set
              calls = u.calls + excluded.calls,
              failed_calls = u.failed_calls + excluded.failed_calls,
              input_tokens = u.input_tokens + excluded.input_tokens,
              cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
              cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
              output_tokens = u.output_tokens + excluded.output_tokens,
              reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
              images = u.images + excluded.images,
              second_micros = u.second_micros + excluded.second_micros,
              cost = u.cost + excluded.cost, vendor_cost = u.vendor_cost + excluded.vendor_cost;
        end if;
        if exists (select from call_watch w where w.expire_time > clock_timestamp()) then
          perform call_notice_ids(p_account, p_settle_ids, p_kind);
        end if;
      end if;
    else
      select o.verdicts, o.available into settle_verdicts, v_available
        from ledger_settle_odd(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
          case when p_kinds is not null then (select json_agg(r)
            from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
              p_kinds, p_kind, p_request_id, p_upstream_request_id, p_input_tokens,
              p_cached_input_tokens, p_cache_write_tokens, p_output_tokens, p_reasoning_tokens,
              p_held, p_duration_ms, p_first_byte_ms, p_start_time) r) end,
          v_ids, v_available, v_held) o;
    end if;
  end if;

  if cardinality(p_extend_ids) > 0 then
    select e.verdicts, e.grown into extend_verdicts, v_sum
      from ledger_extend(p_account, p_extend_ids, p_extend_amounts, p_checkpoints, v_available,
        v_now) e;
    v_available := v_available - v_sum;
    v_held := v_held + v_sum;
  end if;

  if cardinality(p_hold_ids) > 0 then
    v_sum := v_asked;
    if v_sum <= v_available
      and (p_hold_limits is null or ledger_keys_fit(p_hold_keys, p_hold_amounts, p_hold_limits))
      and (v_now is null or ledger_budget_fits(p_account, v_key, p_hold_keys, p_hold_amounts))
    then
      if p_fresh then
        insert into hold
            (id, account_id, amount, node_id, key_id, key_limit, expires_at, request_id,
              budget_time)
          select t.id, p_account, t.amount, p_node, coalesce(t.key_id, v_key), t.key_limit,
              clock_timestamp() + p_ttl_ms * interval '1 ms', t.request_id, v_now
            from unnest(p_hold_ids, p_hold_amounts, p_hold_keys, p_hold_limits, p_hold_requests)
              as t(id, amount, key_id, key_limit, request_id);
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
        v_ids := p_hold_ids;
      else
        with made as (
          insert into hold
              (id, account_id, amount, node_id, key_id, key_limit, expires_at, request_id,
              budget_time)
            select t.id, p_account, t.amount, p_node, coalesce(t.key_id, v_key), t.key_limit,
                clock_timestamp() + p_ttl_ms * interval '1 ms', t.request_id, v_now
              from unnest(p_hold_ids, p_hold_amounts, p_hold_keys, p_hold_limits, p_hold_requests)
                as t(id, amount, key_id, key_limit, request_id)
            on conflict (id) do nothing
            returning id, amount, key_id
        ), spent as (
          insert into key_spend as k (key_id, account_id, held)
            select key_id, p_account, ledger_sum(amount) from made
              where key_id is not null group by key_id
            on conflict (key_id) do update set held = k.held + excluded.held
        )
        select count(*), coalesce(ledger_sum(amount), 0), array_agg(id)
          into v_count, v_sum, v_ids from made;
        if v_count < cardinality(p_hold_ids) then
          select string_agg(case
                when h.account_id <> p_account or h.state <> 1 then 'c'
                when v_now is not null then 'b'
                when h.id = any(v_ids) then 'a' else 'd' end, ',' order by t.n)
            into hold_verdicts
            from unnest(p_hold_ids) with ordinality as t(id, n) join hold h on h.id = t.id;
        end if;
      end if;
      if v_now is not null then
        perform ledger_budget_hold(v_ids);
        hold_verdicts := coalesce(hold_verdicts,
          array_to_string(array_fill('b'::text, array[cardinality(p_hold_ids)]), ','));
      end if;
    else
      select a.verdicts, a.made into hold_verdicts, v_sum
        from ledger_admit(p_account, p_node, p_hold_ids, p_hold_amounts,
          case when v_key is null then p_hold_keys
            else array_fill(v_key, array[cardinality(p_hold_ids)]) end,
          p_hold_limits, p_ttl_ms, v_available, p_hold_requests, v_now) a;
    end if;
    v_available := v_available - v_sum;
    v_held := v_held + v_sum;
  end if;

  update balance b set available = v_available, held = v_held, budget_time = v_now
    where b.account_id = p_account;
  if v_before >= v_low and v_available + v_held < v_low then
    low_balance := v_available + v_held;
    perform alert_low_balance(p_account, low_balance, v_low);
  end if;
end $$;
