-- Trigger on account: sets change_time to the time of the change.
--
-- clock_timestamp(), because now() is the start of the transaction, which can be long ago. Locks:
-- only the updated row.
create or replace function account_stamp() returns trigger
language plpgsql
as $$
begin
  new.change_time := clock_timestamp();
  return new;
end $$;
