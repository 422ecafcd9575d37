-- Begins the periods of an account's budgets that are due, and returns the time that the batch counts with.
-- No job does this: a budget of an idle account simply stays behind until its next call.
--
-- p_since: the time of the batch before (balance.budget_time). Time never goes back, even if the clock of
-- the database does: else a hold could be counted in a period that it does not belong to.
--
-- Locks: the budgets; the caller holds the account's balance row.
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
