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
--   p_sums                What the records of each kind add up to: see ledger_usage.
--   p_request_id to p_start_ms
--                         What each record has of its own, as one array per column; its start in
--                         milliseconds since 1970. A null array of numbers means 0 throughout. Arrays are read in a third of the time of JSON:
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
  p_kinds json = null, p_kind integer[] = null, p_sums bigint[] = null,
  p_request_id text[] = null, p_upstream_request_id text[] = null,
  p_input_tokens integer[] = null, p_cached_input_tokens integer[] = null,
  p_cache_write_tokens integer[] = null, p_output_tokens integer[] = null,
  p_reasoning_tokens integer[] = null, p_held bigint[] = null, p_duration_ms integer[] = null,
  p_first_byte_ms integer[] = null, p_start_ms bigint[] = null,
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
  v_costs bigint[];
  v_released bigint[];
  v_paids bigint[];
  v_vendors bigint[];
  v_keys uuid[];
  v_kinds call[];
  v_key_spent bigint;
  v_key_released bigint;
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
  -- Here, not as constraints of the tables: each would be parsed again by every batch.
  if 0 > any(p_settle_costs) or 0 > any(p_hold_amounts) then
    raise exception 'a cost or a hold is negative' using errcode = 'check_violation';
  end if;
  v_before := v_available + v_held;
  if p_node_name is not null then
    insert into node (id, name) values (p_node, p_node_name) on conflict do nothing;
  end if;

  if v_now is not null then v_now := ledger_budget_roll(p_account, v_now); end if;

  if cardinality(p_settle_ids) > 0 then
    -- One number for the batch: one for each entry would take 2 us each.
    v_seq := nextval('ledger_entry_seq');
    with ended as (
      update hold h
        set state = case when s.cost > 0 then 2 else 3 end, settled = s.cost, request_id = null
        from (select unnest(p_settle_ids) as id, unnest(p_settle_costs) as cost,
            unnest(p_vendor_costs) as vendor) s
        where h.id = s.id and h.account_id = p_account and h.state + 0 = 1
        returning h.id, s.cost, s.vendor, h.amount as released, h.key_id, h.checkpointed
    )
    select count(*), coalesce(ledger_sum(released), 0), coalesce(ledger_sum(cost), 0), array_agg(id),
        array_agg(cost), array_agg(released), array_agg(key_id), bool_or(checkpointed),
        array_agg(vendor)
      into v_count, v_sum, v_cost, v_ids, v_costs, v_released, v_keys, v_checkpointed, v_vendors
      from ended;
    v_paid := v_cost;
    v_paids := v_costs;
    if v_cost > v_available then
      -- Each call is paid by its hold, then by what is left in the pool, in the order of ids.
      select array_agg(cost - least(excess, greatest(-remaining, 0)) order by n),
          coalesce(ledger_sum(cost - least(excess, greatest(-remaining, 0))), 0)
        into v_paids, v_paid
        from (
          select n, cost, greatest(cost - released, 0) as excess,
              v_available + ledger_sum(greatest(released - cost, 0)) over ()
                - ledger_sum(greatest(cost - released, 0)) over (order by id) as remaining
            from unnest(v_ids, v_costs, v_released) with ordinality as t(id, cost, released, n)
        ) pooled;
      platform_loss := nullif(v_cost - v_paid, 0);
    end if;
    if v_cost > 0 or p_vendor_costs is not null then
      insert into ledger_charge
          (id, account_id, create_time, seq, cost, paid, balance_after, vendor_cost)
        select id, p_account, now(), v_seq, cost, paid, case when paid > 0 then balance end,
            nullif(vendor, 0)
          from (select id, cost, paid, vendor, v_before - ledger_sum(paid) over (order by id) as balance
              from unnest(v_ids, v_costs, v_paids, v_vendors) as c(id, cost, paid, vendor)) t
          where cost > 0 or vendor <> 0;
    end if;
    v_available := v_available + v_sum - v_paid;
    v_held := v_held - v_sum;

    -- One key for all: its sums are written with those of the new holds, where nothing asks for them before.
    if v_keys[1] = all(v_keys) and v_keys[1] = v_key and p_fresh and p_hold_limits is null
      and p_extend_ids is null and v_now is null
    then
      v_key_spent := v_cost;
      v_key_released := v_sum;
    elsif v_keys[1] = all(v_keys) then
      update key_spend k set spent = k.spent + v_cost, held = k.held - v_sum
        where k.key_id = v_keys[1];
    elsif v_count > 0 then
      update key_spend k set spent = k.spent + s.cost, held = k.held - s.released
        from (select key_id, ledger_sum(cost) as cost, ledger_sum(released) as released
          from unnest(v_keys, v_costs, v_released) as t(key_id, cost, released)
          where key_id is not null group by key_id) s
        where k.key_id = s.key_id;
    end if;
    if v_now is not null then perform ledger_budget_count(v_ids); end if;
    if v_checkpointed then delete from hold_checkpoint where hold_id = any(v_ids); end if;
    if v_count = cardinality(p_settle_ids) then
      if p_kinds is not null and p_fresh then
        v_kinds := array(select k from json_populate_recordset(null::call, p_kinds) k);
        insert into call
          select * from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
            v_kinds, p_kind, p_request_id, p_upstream_request_id, p_input_tokens,
            p_cached_input_tokens, p_cache_write_tokens, p_output_tokens, p_reasoning_tokens,
            p_held, p_duration_ms, p_first_byte_ms, p_start_ms);
        perform ledger_usage(p_account, v_kinds, p_sums);
        if exists (select from call_watch w where w.expire_time > clock_timestamp()) then
          perform call_notice(array_fill(p_account, array[v_count]), array(select t.id
            from unnest(p_settle_ids, p_kind) as t(id, kind) where t.kind is distinct from 0));
        end if;
      elsif p_kinds is not null then
        perform call_write((select json_agg(r)
          from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
            array(select k from json_populate_recordset(null::call, p_kinds) k), p_kind,
            p_request_id, p_upstream_request_id, p_input_tokens, p_cached_input_tokens,
            p_cache_write_tokens, p_output_tokens, p_reasoning_tokens, p_held, p_duration_ms,
            p_first_byte_ms, p_start_ms) r));
      end if;
    else
      select o.verdicts, o.available,
          nullif(coalesce(ledger_apply.platform_loss, 0) + coalesce(o.platform_loss, 0), 0)
        into settle_verdicts, v_available, platform_loss
        from ledger_settle_odd(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
          case when p_kinds is not null then (select json_agg(r)
            from ledger_call_rows(p_account, p_settle_ids, p_settle_costs, p_vendor_costs,
              array(select k from json_populate_recordset(null::call, p_kinds) k), p_kind,
              p_request_id, p_upstream_request_id, p_input_tokens, p_cached_input_tokens,
              p_cache_write_tokens, p_output_tokens, p_reasoning_tokens, p_held, p_duration_ms,
              p_first_byte_ms, p_start_ms) r) end,
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
          update key_spend k set held = k.held + v_sum - coalesce(v_key_released, 0),
              spent = k.spent + coalesce(v_key_spent, 0) where k.key_id = v_key;
          if not found then
            insert into key_spend (key_id, account_id, held) values (v_key, p_account, v_sum);
          end if;
          v_key_spent := null;
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
        perform ledger_budget_count(v_ids);
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

  if v_key_spent is not null then
    update key_spend k set spent = k.spent + v_key_spent, held = k.held - v_key_released
      where k.key_id = v_key;
  end if;
  update balance b set available = v_available, held = v_held, budget_time = v_now
    where b.account_id = p_account;
  if v_before >= v_low and v_available + v_held < v_low then
    low_balance := v_available + v_held;
    perform alert_low_balance(p_account, low_balance, v_low);
  end if;
end $$;
