-- Trigger on task: the visible part of an ended task never changes (R-TSK-1), for every writer.
--
-- Late results are stored in task_event. The request of a task never changes. Progress never
-- decreases. version counts the changes that callers can see. json has no equality operator: it is
-- compared as text.
--
-- Locks: only the updated row.
create or replace function task_guard() returns trigger
language plpgsql
as $$
declare
  is_seen boolean;
begin
  new.progress := greatest(old.progress, new.progress);
  is_seen := (new.state, new.progress, new.cancel_requested, new.vendor, new.vendor_task_id,
      new.result::text, new.error_code, new.error, new.usage::text, new.cost, new.start_time,
        new.finish_time,
      new.expire_time)
    is distinct from (old.state, old.progress, old.cancel_requested, old.vendor, old.vendor_task_id,
      old.result::text, old.error_code, old.error, old.usage::text, old.cost, old.start_time,
        old.finish_time,
      old.expire_time);
  if is_seen and old.finish_time is not null then
    raise exception 'task % has ended: that is final', old.id using errcode = 'check_violation';
  end if;
  if (new.id, new.account_id, new.key_id, new.model, new.type, new.fingerprint, new.callback_id,
      new.callback_url, new.request_id, new.hold, new.create_time)
    is distinct from (old.id, old.account_id, old.key_id, old.model, old.type, old.fingerprint,
      old.callback_id, old.callback_url, old.request_id, old.hold, old.create_time) then
    raise exception 'what was asked for by task % never changes',
      old.id using errcode = 'check_violation';
  end if;
  new.version := old.version + is_seen::int;
  return new;
end $$;
