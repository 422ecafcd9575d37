-- Adds the call records of a batch of ledger_apply to the hourly sums (usage_hour).
--
-- p_kinds: the common parts of records. p_sums: for each kind the sums of its records, nine
-- numbers: the hour (hours since 1970; the same for all records of a kind), the number of records,
-- input, cached input, cache write, output and reasoning tokens, cost, vendor's cost. Adding up the
-- written rows took twice as long.
--
-- Locks: the rows of usage_hour in the order of their keys; the caller has locked the account's
-- balance row.
create or replace function ledger_usage(p_account uuid, p_kinds call_kind[], p_sums bigint[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
  perform usage_add(array(
    select row(p_account, to_timestamp(s.hour * 3600), k.key_id, k.model, k.vendor,
        ledger_sum(s.calls), ledger_sum(case when k.ending in (1, 5, 10) then 0 else s.calls end),
        ledger_sum(p_sums[s.at + 2]), ledger_sum(p_sums[s.at + 3]), ledger_sum(p_sums[s.at + 4]),
        ledger_sum(p_sums[s.at + 5]), ledger_sum(p_sums[s.at + 6]),
        ledger_sum(coalesce(k.images, 0) * s.calls),
        ledger_sum(coalesce(k.second_micros, 0) * s.calls),
        ledger_sum(p_sums[s.at + 7]), ledger_sum(p_sums[s.at + 8]))::usage_hour
      from unnest(p_kinds) with ordinality k
        cross join lateral (select k.ordinality * 9 - 8 as at, p_sums[k.ordinality * 9 - 8] as hour,
          p_sums[k.ordinality * 9 - 7] as calls) s
      group by s.hour, k.key_id, k.model, k.vendor));
end $$;
