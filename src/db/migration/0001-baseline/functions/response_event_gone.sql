-- Trigger on stored_response: deletes the events of a deleted response, for every writer.
--
-- Locks: the response (by the statement that fires the trigger), then its events.
create or replace function response_event_gone() returns trigger
language plpgsql
as $$
begin
  delete from response_event where account_id = old.account_id and response_id = old.id;
  return null;
end $$;
