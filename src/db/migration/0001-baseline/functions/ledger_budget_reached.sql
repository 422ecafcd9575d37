-- The highest threshold, in percent, that the spending of a budget has reached; 0 if none.
--
-- Locks: none.
create or replace function ledger_budget_reached(p_spent bigint, p_amount bigint) returns smallint
language sql immutable
as $$
  select case when p_spent >= p_amount::numeric * 0.95 then 95 when p_spent >= p_amount::numeric * 0.8 then 80
    when p_spent >= p_amount::numeric * 0.5 then 50 else 0 end::smallint
$$;
