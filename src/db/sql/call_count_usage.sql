-- Trigger on call, once per statement: keeps the hourly sums of usage_hour equal to the call log.
--
-- A deleted record is subtracted; an updated one is subtracted as it was and added as it is. The
-- trigger covers every writer but ledger_apply, which writes its sums itself (see there) and turns
-- the trigger for insertions off by the setting uas.call_counted.
--
-- Locks: the rows of usage_hour in the order of their keys, because records of refused calls come
-- without the lock of their account.
create or replace function call_count_usage() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'INSERT' then
    insert into usage_hour as u (account_id, hour, key_id, model, calls, failed_calls,
      input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
      images, second_micros, cost, vendor_cost)
      select account_id, uuid_hour(id), key_id, model, sum(sign * 1) as calls,
        sum(sign * (ending not in (1, 5, 10))::int) as failed_calls,
        sum(sign * input_tokens) as input_tokens,
        sum(sign * cached_input_tokens) as cached_input_tokens,
        sum(sign * cache_write_tokens) as cache_write_tokens,
        sum(sign * output_tokens) as output_tokens,
        sum(sign * reasoning_tokens) as reasoning_tokens, sum(sign * coalesce(images,
        0)) as images, sum(sign * coalesce(second_micros, 0)) as second_micros,
        sum(sign * cost) as cost, sum(sign * coalesce(vendor_cost, 0)) as vendor_cost
        from (select 1 as sign, c.* from new_calls c) c
        group by 1, 2, 3, 4 order by 1, 2, 3, 4
      on conflict (account_id, hour, key_id, model) do update set calls = u.calls + excluded.calls,
        failed_calls = u.failed_calls + excluded.failed_calls,
        input_tokens = u.input_tokens + excluded.input_tokens,
        cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
        images = u.images + excluded.images,
        second_micros = u.second_micros + excluded.second_micros, cost = u.cost + excluded.cost,
        vendor_cost = u.vendor_cost + excluded.vendor_cost;
  elsif tg_op = 'DELETE' then
    insert into usage_hour as u (account_id, hour, key_id, model, calls, failed_calls,
      input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
      images, second_micros, cost, vendor_cost)
      select account_id, uuid_hour(id), key_id, model, sum(sign * 1) as calls,
        sum(sign * (ending not in (1, 5, 10))::int) as failed_calls,
        sum(sign * input_tokens) as input_tokens,
        sum(sign * cached_input_tokens) as cached_input_tokens,
        sum(sign * cache_write_tokens) as cache_write_tokens,
        sum(sign * output_tokens) as output_tokens,
        sum(sign * reasoning_tokens) as reasoning_tokens, sum(sign * coalesce(images,
        0)) as images, sum(sign * coalesce(second_micros, 0)) as second_micros,
        sum(sign * cost) as cost, sum(sign * coalesce(vendor_cost, 0)) as vendor_cost
        from (select -1 as sign, c.* from old_calls c) c
        group by 1, 2, 3, 4 order by 1, 2, 3, 4
      on conflict (account_id, hour, key_id, model) do update set calls = u.calls + excluded.calls,
        failed_calls = u.failed_calls + excluded.failed_calls,
        input_tokens = u.input_tokens + excluded.input_tokens,
        cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
        images = u.images + excluded.images,
        second_micros = u.second_micros + excluded.second_micros, cost = u.cost + excluded.cost,
        vendor_cost = u.vendor_cost + excluded.vendor_cost;
  else
    insert into usage_hour as u (account_id, hour, key_id, model, calls, failed_calls,
      input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
      images, second_micros, cost, vendor_cost)
      select account_id, uuid_hour(id), key_id, model, sum(sign * 1) as calls,
        sum(sign * (ending not in (1, 5, 10))::int) as failed_calls,
        sum(sign * input_tokens) as input_tokens,
        sum(sign * cached_input_tokens) as cached_input_tokens,
        sum(sign * cache_write_tokens) as cache_write_tokens,
        sum(sign * output_tokens) as output_tokens,
        sum(sign * reasoning_tokens) as reasoning_tokens, sum(sign * coalesce(images,
        0)) as images, sum(sign * coalesce(second_micros, 0)) as second_micros,
        sum(sign * cost) as cost, sum(sign * coalesce(vendor_cost, 0)) as vendor_cost
        from (select -1 as sign, c.* from old_calls c union all select 1 as sign,
          c.* from new_calls c) c
        group by 1, 2, 3, 4 order by 1, 2, 3, 4
      on conflict (account_id, hour, key_id, model) do update set calls = u.calls + excluded.calls,
        failed_calls = u.failed_calls + excluded.failed_calls,
        input_tokens = u.input_tokens + excluded.input_tokens,
        cached_input_tokens = u.cached_input_tokens + excluded.cached_input_tokens,
        cache_write_tokens = u.cache_write_tokens + excluded.cache_write_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens,
        reasoning_tokens = u.reasoning_tokens + excluded.reasoning_tokens,
        images = u.images + excluded.images,
        second_micros = u.second_micros + excluded.second_micros, cost = u.cost + excluded.cost,
        vendor_cost = u.vendor_cost + excluded.vendor_cost;
  end if;
  return null;
end $$;
