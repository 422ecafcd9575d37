-- Trigger on api_key: sets change_time and delete_time, and refuses to restore a deleted key.
--
-- clock_timestamp(), because now() is the start of the transaction, which can be long ago. A
-- trigger, so that the rule holds for manual changes too.
--
-- Locks: only the written row.
create or replace function api_key_stamp() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'UPDATE' and old.state = 3 and new.state <> 3 then
    raise exception 'key % is deleted: that is final', old.id using errcode = 'check_violation';
  end if;
  new.change_time := clock_timestamp();
  if new.state = 3 then
    new.delete_time := coalesce(new.delete_time, clock_timestamp());
  end if;
  return new;
end $$;
