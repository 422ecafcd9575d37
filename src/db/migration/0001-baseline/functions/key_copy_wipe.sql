-- Trigger on api_key: deletes the sealed copy of a deleted key, for every writer.
--
-- Locks: the key's row (by the statement that fires the trigger), then its copy.
create or replace function key_copy_wipe() returns trigger
language plpgsql
as $$
begin
  delete from key_copy where key_id = old.id;
  return null;
end $$;
