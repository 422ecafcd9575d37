-- Trigger on task: records a change of state in task_event, and notifies clients that wait for the
-- task.
--
-- The payload on the channel task_changed is the task's id. New tasks are not announced: no client
-- can wait for one yet, and commits with notifications wait for each other.
--
-- Locks: none.
create or replace function task_notice() returns trigger
language plpgsql
as $$
begin
  if new.state <> old.state then
    insert into task_event (task_id, kind, state) values (new.id, 'state', new.state);
  end if;
  perform pg_notify('task_changed', new.id::text);
  return null;
end $$;
