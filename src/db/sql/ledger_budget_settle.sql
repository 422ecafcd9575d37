-- Counts settled holds in the budgets of their account and keys: what they cost instead of what they held.
--
-- A call counts in the period in which it was held. What was held in an earlier one is not counted any
-- more: that period is over.
--
-- Locks: the budgets; the caller holds the account's balance row.
create or replace function ledger_budget_settle(p_ids uuid[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  update budget b set spent = b.spent + s.cost, held = b.held - s.amount
    from (select b.owner_id, b.period, ledger_sum(coalesce(h.settled, 0)) as cost,
        ledger_sum(h.amount) as amount
      from hold h join budget b on b.owner_id = any(array[h.account_id, h.key_id])
        and h.budget_time >= b.start_time
      where h.id = any(p_ids) group by b.owner_id, b.period) s
    where b.owner_id = s.owner_id and b.period = s.period;
end $$;
