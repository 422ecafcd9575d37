-- Trigger on task_event: refuses UPDATE, and DELETE as long as the task exists.
--
-- The history of a task is append-only. Locks: none.
create or replace function task_event_guard() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'DELETE' and not exists (select from task where id = old.task_id) then
    return old;
  end if;
  raise exception 'events of task % are final', old.task_id using errcode = 'check_violation';
end $$;
