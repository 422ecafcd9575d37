-- Writes call records that do not exist yet, adds them to the hourly sums (usage_hour), and
-- notifies watchers of the call log. Every record is written by this function, or by ledger_apply,
-- which does the same at a lower cost. There is no trigger, because one that reads the new rows
-- would copy each of them.
--
-- p_calls: rows of call as a JSON array; null if there are none.
--
-- Locks: the locks of usage_add.
create or replace function call_write(p_calls json) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_sums usage_hour[];
  v_accounts uuid[];
  v_ids uuid[];
begin
  with written as (
    insert into call select * from json_populate_recordset(null::call, p_calls)
      on conflict (id) do nothing
      returning *
  ), summed as (
    select row(account_id, uuid_hour(id), key_id, model, vendor, count(*),
        count(*) filter (where ending not in (1, 5, 10)), sum(input_tokens),
        sum(cached_input_tokens), sum(cache_write_tokens), sum(output_tokens),
        sum(reasoning_tokens), coalesce(sum(images), 0), coalesce(sum(second_micros), 0)::bigint,
        sum(cost)::bigint, coalesce(sum(vendor_cost), 0)::bigint)::usage_hour as sums
      from written group by account_id, uuid_hour(id), key_id, model, vendor
  )
  select array(select sums from summed), array_agg(account_id), array_agg(id)
    into v_sums, v_accounts, v_ids from written;
  perform usage_add(v_sums);
  perform call_notice(v_accounts, v_ids);
end $$;
