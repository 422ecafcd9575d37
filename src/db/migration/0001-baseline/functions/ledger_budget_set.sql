-- Sets the budgets of a key or an account (p_owner is the account itself) to exactly these; an
-- empty list removes them. They apply from the next hold on, in every process.
--
-- A new budget counts the cost of its period so far (usage_hour) and the open holds. A budget with
-- a changed amount keeps its count; one with a changed time zone counts anew. Thresholds that it
-- has already reached are not reported.
--
-- Locks, in this order: the account's balance row; its open holds; its budgets. SQL, because the
-- first count and the holds that follow must see one state of the balance.
create or replace function ledger_budget_set(
  p_account uuid, p_owner uuid, p_periods smallint[], p_amounts bigint[], p_zones text[]
) returns void
language plpgsql
as $$
declare
  v_time timestamptz;
  v_seq bigint;
begin
  insert into balance (account_id) values (p_account) on conflict do nothing;
  select b.budget_time into v_time from balance b where b.account_id = p_account for update;
  if v_time is null then
    if cardinality(p_periods) = 0 then return; end if;
    v_time := clock_timestamp();
    -- Holds of an account without budgets do not store when they were made, but their id contains
    -- it.
    update open_hold h set budget_time = least(v_time, to_timestamp(
        ('x' || left(replace(h.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0))
      where h.account_id = p_account;
  else
    v_time := ledger_budget_roll(p_account, v_time);
  end if;
  delete from budget b where b.owner_id = p_owner and b.period <> all(p_periods);
  -- Under the account's lock: its later entries have higher numbers.
  v_seq := nextval('ledger_entry_seq');
  insert into budget as b (owner_id, account_id, period, amount, time_zone, start_time, end_time, spent,
      carried, from_seq, held)
    select p_owner, p_account, t.period, t.amount, t.zone, p.start_time, p.end_time, c.spent, c.spent, v_seq,
        (select coalesce(ledger_sum(h.amount), 0) from open_hold h
          where h.account_id = p_account and h.budget_time >= p.start_time
            and (p_owner = p_account or h.key_id = p_owner))
      from unnest(p_periods, p_amounts, p_zones) as t(period, amount, zone)
        cross join lateral ledger_budget_period(v_time, t.period, t.zone) p
        cross join lateral (select coalesce(ledger_sum(u.cost), 0) as spent from usage_hour u
          where u.account_id = p_account and u.hour >= p.start_time
            and (p_owner = p_account or u.key_id = p_owner::text)) c
    on conflict (owner_id, period) do update set amount = excluded.amount,
      time_zone = excluded.time_zone, start_time = excluded.start_time, end_time = excluded.end_time,
      spent = case when b.time_zone = excluded.time_zone then b.spent else excluded.spent end,
      carried = case when b.time_zone = excluded.time_zone then b.carried else excluded.carried end,
      from_seq = case when b.time_zone = excluded.time_zone then b.from_seq else excluded.from_seq end,
      held = case when b.time_zone = excluded.time_zone then b.held else excluded.held end;
  update budget b set alerted = ledger_budget_reached(b.spent, b.amount) where b.owner_id = p_owner;
  update balance b
    set budget_time = case when exists (select from budget where account_id = p_account) then v_time end
    where b.account_id = p_account;
end $$;
