-- Trigger on hold_step: refuses UPDATE and DELETE. The growth of a hold is part of its receipt.
--
-- Locks: none.
create or replace function hold_step_refuse() returns trigger
language plpgsql
as $$
begin
  raise exception 'steps of holds are append-only' using errcode = 'restrict_violation';
end $$;
