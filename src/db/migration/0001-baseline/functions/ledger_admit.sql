-- Makes the holds of a batch one by one, if the balance, a key's limit or a budget does not cover
-- all of them.
--
-- Called by ledger_apply. p_now: when they are counted in budgets; null if the account has none.
-- Returns one verdict for each hold, comma separated (see there), and the sum of the holds made.
--
-- Locks, in this order: the caller has locked the account's balance row; holds; keys (key_spend);
-- budgets. SQL, because the answer to one hold determines the amount available for the next one.
create or replace function ledger_admit(
  p_account uuid, p_node uuid, p_ids uuid[], p_amounts bigint[], p_keys uuid[], p_limits bigint[],
  p_ttl_ms integer, p_available bigint, p_requests text[], p_now timestamptz,
  out verdicts text, out made bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_words text[] := '{}';
  v_word text;
  v_count integer;
  v_remaining bigint;
  v_short text;
begin
  made := 0;
  for i in 1..cardinality(p_ids) loop
    select case when h.account_id <> p_account then 'c' when p_now is null then 'd' else 'b' end into v_word
      from open_hold h where h.id = p_ids[i];
    if found then
      null;
    elsif exists (select from ended_hold e where e.account_id = p_account and e.id = p_ids[i]) then
      v_word := 'c';
    else
      -- A call with a maximum cost of zero is not refused, even if the spending already exceeds the
      -- limit.
      v_remaining := case when p_limits[i] is not null then greatest(p_limits[i] - coalesce(
        (select k.spent + k.held from key_spend k where k.key_id = p_keys[i]), 0), 0) end;
      v_short := case when p_now is not null then
        ledger_budget_short(p_account, p_keys[i], p_amounts[i]) end;
      if p_amounts[i] > p_available - made then
        v_word := (p_available - made)::text;
      elsif p_amounts[i] > v_remaining then
        v_word := format('%s/%s', p_available - made, v_remaining);
      elsif v_short is not null then
        v_word := format('%s|%s', p_available - made, v_short);
      else
        insert into open_hold (id, account_id, amount, node_id, key_id, key_limit, expires_at, request_id,
            budget_time)
          values (p_ids[i], p_account, p_amounts[i], p_node, p_keys[i], p_limits[i],
            clock_timestamp() + p_ttl_ms * interval '1 ms', p_requests[i], p_now)
          on conflict (id) do nothing;
        get diagnostics v_count = row_count;
        v_word := case when v_count = 0 then 'c' when p_now is null then 'a' else 'b' end;
        made := made + v_count * p_amounts[i];
        if v_count = 1 and p_now is not null then
          perform ledger_budget_count(p_account, array[p_keys[i]], array[p_now], null, array[p_amounts[i]], 1);
        end if;
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
end $$;
