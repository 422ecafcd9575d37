-- Looks whether the database's clock was set back since a process last looked, and moves what waits for a time: without
-- that, tasks and deliveries would wait until the clock is there again. Returns by how many milliseconds; null: it was not.
--
-- What a process holds a lease of is not taken from it: its lease ends when one that begins now would, and a process that
-- lives renews it. Pauses and deadlines end as much earlier. What was planned since the clock was set back is due too
-- early, which does no harm. A clock that is set forward looks like a gateway that stood still: what is due begins.
--
-- Parameters
--   p_task_lease_ms, p_delivery_lease_ms
--                         How long a lease of a task and of a delivery lasts.
--   p_tolerated_ms        Less than that is nothing: clocks are corrected by as much all the time.
--
-- Locks: the row of clock_mark, then tasks, deliveries, endpoints and alerts that wait. SQL, because only the database's clock
-- counts.
create or replace function clock_follow(
  p_task_lease_ms integer, p_delivery_lease_ms integer, p_tolerated_ms integer,
  out set_back_ms bigint
)
language plpgsql
as $$
declare
  v_mark timestamptz;
  v_now timestamptz;
  v_back interval;
  v_lease interval := p_task_lease_ms * interval '1 ms';
begin
  insert into clock_mark (time) values (clock_timestamp()) on conflict do nothing;
  select m.time into v_mark from clock_mark m for update;
  v_now := clock_timestamp();
  update clock_mark set time = v_now;
  v_back := v_mark - v_now;
  if v_back <= p_tolerated_ms * interval '1 ms' then return; end if;
  set_back_ms := floor(extract(epoch from v_back) * 1000);

  update task t set
      lease_until = case when t.lease_until is not null then least(t.lease_until, v_now + v_lease) end,
      next_time = case when t.lease_until is null then t.next_time - v_back else least(t.next_time, v_now + v_lease) end,
      -- Of a task that began since then, the deadline is right.
      deadline = case when coalesce(t.start_time, t.create_time) > v_now then t.deadline - v_back else t.deadline end
    where (t.finish_time is null or t.is_trailing)
      and (t.next_time > v_now or coalesce(t.start_time, t.create_time) > v_now);
  update webhook_delivery d set due = d.due - v_back where d.state = 1 and d.due > v_now;
  update webhook_delivery d set lease_until = v_now + p_delivery_lease_ms * interval '1 ms'
    where d.state = 2 and d.lease_until > v_now + p_delivery_lease_ms * interval '1 ms';
  update webhook_endpoint e set open_until = e.open_until - v_back where e.open_until > v_now;
  update webhook_endpoint e set failing_since = e.failing_since - v_back where e.failing_since > v_now;
  update alert a set email_due = a.email_due - v_back where a.email_due > v_now;
end $$;
