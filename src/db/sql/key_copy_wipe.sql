-- Trigger on api_key: deletes the sealed copy of a key that is deleted, whoever deletes it.
--
-- Locks: the key's row (by the statement that fires the trigger), then its copy.
create or replace function key_copy_wipe() returns trigger
language plpgsql
as $$
begin
  delete from key_copy where key_id = old.id;
  return null;
end $$;
