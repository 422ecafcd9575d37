-- Counts new holds in the budgets of their account and keys.
--
-- Called by ledger_apply and ledger_admit after ledger_budget_roll, so that every hold belongs to the
-- current periods.
--
-- Locks: the budgets; the caller holds the account's balance row.
create or replace function ledger_budget_hold(p_ids uuid[]) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  update budget b set held = b.held + s.amount
    from (select b.owner_id, b.period, ledger_sum(h.amount) as amount
      from hold h join budget b on b.owner_id = any(array[h.account_id, h.key_id])
      where h.id = any(p_ids) group by b.owner_id, b.period) s
    where b.owner_id = s.owner_id and b.period = s.period;
end $$;
