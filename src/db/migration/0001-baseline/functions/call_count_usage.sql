-- Trigger on call, once per statement that updates or deletes: keeps the hourly sums of usage_hour
-- equal to the call log. Functions that insert records count them: ledger_apply and call_write.
--
-- Its argument is the sign: 1 adds the rows of the transition table changed_calls, -1 subtracts
-- them. An update fires it twice: for the new rows and for the old rows.
--
-- Locks: the locks of usage_add.
create or replace function call_count_usage() returns trigger
language plpgsql
as $$
declare
  v_sign integer := tg_argv[0];
begin
  perform usage_add(array(
    select row(account_id, uuid_hour(id), key_id, model, vendor, v_sign * count(*),
        v_sign * count(*) filter (where ending not in (1, 5, 10)), v_sign * sum(input_tokens),
        v_sign * sum(cached_input_tokens), v_sign * sum(cache_write_tokens),
        v_sign * sum(output_tokens), v_sign * sum(reasoning_tokens),
        v_sign * coalesce(sum(images), 0), v_sign * coalesce(sum(second_micros), 0)::bigint,
        v_sign * sum(cost)::bigint, v_sign * coalesce(sum(vendor_cost), 0)::bigint)::usage_hour
      from changed_calls group by account_id, uuid_hour(id), key_id, model, vendor));
  return null;
end $$;
