-- Counts holds in the budgets of their account and keys: new holds (p_sign 1) with their amount,
-- ended holds (p_sign -1) with their cost instead of their amount. Reports each threshold (50, 80,
-- 95 percent) that a budget reaches, once per period.
--
-- p_keys, p_times, p_costs, p_amounts: for each hold its key, when it was held, its cost (null if
-- it is new) and its amount. A null array means null throughout.
--
-- Called after ledger_budget_roll. A call counts in the period in which it was held. Holds of an
-- earlier period are not counted, because that period has ended.
--
-- Locks: the budgets; the caller has locked the account's balance row.
create or replace function ledger_budget_count(
  p_account uuid, p_keys uuid[], p_times timestamptz[], p_costs bigint[], p_amounts bigint[], p_sign integer
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  with counted as (
    update budget b set spent = b.spent + s.cost, held = b.held + s.held,
        alerted = greatest(b.alerted, ledger_budget_reached(b.spent + s.cost, b.amount))
      from (select b.owner_id, b.period, b.alerted, ledger_sum(coalesce(h.cost, 0)) as cost,
          ledger_sum(p_sign * h.amount) as held
        from unnest(p_keys, p_times, p_costs, p_amounts) as h(key_id, time, cost, amount)
          join budget b on b.owner_id = any(array[p_account, h.key_id]) and h.time >= b.start_time
        group by b.owner_id, b.period, b.alerted) s
      where b.owner_id = s.owner_id and b.period = s.period
      returning b.*, s.alerted as before
  )
  insert into alert (id, account_id, kind, facts)
    select ledger_uuid(), c.account_id, 2, jsonb_build_object('threshold', t.percent,
        'owner', c.owner_id, 'period', c.period, 'amount', c.amount::text, 'spent', c.spent::text,
        'timeZone', c.time_zone, 'startTime', c.start_time, 'endTime', c.end_time)
      from counted c cross join unnest(array[50, 80, 95]) as t(percent)
      where t.percent > c.before and t.percent <= c.alerted order by t.percent;
end $$;
