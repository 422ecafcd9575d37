-- Trigger on call, once per statement: keeps the hourly sums of usage_hour equal to the call log.
--
-- Its argument is the sign: 1 adds the rows of the transition table changed_calls, -1 subtracts them. An
-- update fires it twice: for the rows as they are, and for the rows as they were. The trigger covers
-- every writer but ledger_apply, which writes its sums itself (see there) and sets uas.call_counted to
-- turn the trigger for insertions off.
--
-- Locks: the rows of usage_hour in the order of their keys, because records of refused calls come
-- without the lock of their account.
create or replace function call_count_usage() returns trigger
language plpgsql
as $$
declare
  v_sign integer := tg_argv[0];
begin
  insert into usage_hour as u (account_id, hour, key_id, model, vendor, calls, failed_calls, input_tokens,
      cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, images,
      second_micros, cost, vendor_cost)
    select account_id, uuid_hour(id), key_id, model, vendor, v_sign * count(*),
        v_sign * count(*) filter (where ending not in (1, 5, 10)), v_sign * sum(input_tokens),
        v_sign * sum(cached_input_tokens), v_sign * sum(cache_write_tokens),
        v_sign * sum(output_tokens), v_sign * sum(reasoning_tokens),
        v_sign * coalesce(sum(images), 0), v_sign * coalesce(sum(second_micros), 0),
        v_sign * sum(cost), v_sign * coalesce(sum(vendor_cost), 0)
      from changed_calls
      group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
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
      cost = u.cost + excluded.cost,
      vendor_cost = u.vendor_cost + excluded.vendor_cost;
  return null;
end $$;
