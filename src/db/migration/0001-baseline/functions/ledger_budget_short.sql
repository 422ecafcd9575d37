-- The budget that is too small for one more hold: the one with the smallest rest. Null if there is
-- none.
--
-- As text, for the verdict of the hold: owner (a: the account, k: the key), period, amount,
-- remaining amount, when the period ends (in milliseconds since 1970) and time zone, with |
-- between.
--
-- Locks: none; the caller has locked the account's balance row, which protects the budgets.
create or replace function ledger_budget_short(p_account uuid, p_key uuid, p_amount bigint)
returns text
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
  return (select concat_ws('|', case when b.owner_id = p_account then 'a' else 'k' end, b.period, b.amount,
      t.remaining, floor(extract(epoch from b.end_time) * 1000)::bigint, b.time_zone)
    from budget b
      cross join lateral (select greatest(b.amount - b.spent - b.held, 0) as remaining) t
    where b.owner_id = any(array[p_account, p_key]) and p_amount > t.remaining
    order by t.remaining, b.end_time desc limit 1);
end $$;
