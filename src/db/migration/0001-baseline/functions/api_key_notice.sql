-- Trigger on api_key and account: notifies every process of a key that may have changed.
--
-- Each process caches the state of keys and listens on the channel key_changed. The payload is the
-- id of the key or account; an empty payload means that any key may have changed. A trigger, so
-- that a change made by hand reaches the processes too.
--
-- Locks: none. Commits that send notices wait for each other.
create or replace function api_key_notice() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'TRUNCATE' then
    perform pg_notify('key_changed', '');
  else
    perform pg_notify('key_changed', coalesce(old.id, new.id)::text);
  end if;
  return null;
end $$;
