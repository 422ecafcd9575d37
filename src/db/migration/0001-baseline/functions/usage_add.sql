-- Adds to the hourly sums of usage_hour: one row of p_rows for each account, hour, key, model and
-- vendor.
--
-- Locks: the rows of usage_hour in the order of their keys, because records of refused calls are
-- written without the lock of their account.
create or replace function usage_add(p_rows usage_hour[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
  insert into usage_hour as u select * from unnest(p_rows) order by account_id, hour, key_id, model, vendor
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
end $$;
