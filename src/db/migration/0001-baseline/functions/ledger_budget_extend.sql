-- Grows a hold within the budgets of its account and its key. Returns the growth that they allow,
-- at most p_growth, and counts it.
--
-- p_held, p_time: the amount of the hold, and when it was counted (open_hold.budget_time). A hold
-- of an earlier period moves into the current one with its whole amount: its period has ended and
-- has no budget any longer. p_now: when it is counted now.
--
-- Locks: the budgets; the caller has locked the account's balance row.
create or replace function ledger_budget_extend(
  p_account uuid, p_key uuid, p_held bigint, p_time timestamptz, p_growth bigint
) returns bigint
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_growth bigint;
begin
  select least(p_growth, min(greatest(b.amount - b.spent - b.held, 0)
      - case when p_time < b.start_time then p_held else 0 end)) into v_growth
    from budget b where b.owner_id = any(array[p_account, p_key]);
  if v_growth <= 0 then return 0; end if;
  update budget b
    set held = b.held + v_growth + case when p_time < b.start_time then p_held else 0 end
    where b.owner_id = any(array[p_account, p_key]);
  return v_growth;
end $$;
