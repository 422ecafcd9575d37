-- The day (period 1), week (2) or month (3) of a time zone to which a moment belongs. Weeks begin
-- on Monday.
--
-- If clocks go back at midnight, midnight happens twice, and PostgreSQL means the second one: the
-- hour before it still belongs to the earlier period.
--
-- Locks: none.
create or replace function ledger_budget_period(
  p_now timestamptz, p_period smallint, p_zone text,
  out start_time timestamptz, out end_time timestamptz
)
language plpgsql stable
as $$
declare
  v_word text := (array['day', 'week', 'month'])[p_period];
  v_length interval := ('1 ' || v_word)::interval;
  v_first timestamp := date_trunc(v_word, p_now at time zone p_zone);
begin
  if v_first at time zone p_zone > p_now then v_first := v_first - v_length; end if;
  start_time := v_first at time zone p_zone;
  end_time := (v_first + v_length) at time zone p_zone;
end $$;
