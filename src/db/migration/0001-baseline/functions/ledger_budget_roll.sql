-- Begins the due periods of an account's budgets, and returns the time with which the batch counts.
-- No job does this: a budget of an idle account keeps its old period until the next call.
--
-- p_since: the time of the batch before (balance.budget_time). The returned time never decreases,
-- even if the clock of the database does: otherwise a hold could be counted in a wrong period.
--
-- Locks: the budgets; the caller has locked the account's balance row.
create or replace function ledger_budget_roll(p_account uuid, p_since timestamptz)
returns timestamptz
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := greatest(p_since, clock_timestamp());
begin
  update budget b set spent = 0, held = 0, alerted = 0, carried = 0, (start_time, end_time) = (
      select p.start_time, p.end_time from ledger_budget_period(v_now, b.period, b.time_zone) p)
    where b.account_id = p_account and b.end_time <= v_now;
  return v_now;
end $$;
