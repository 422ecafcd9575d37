-- Looks whether the database's clock was set back or forward since a process last looked, and moves what waits for a time
-- with it. Without that, tasks and deliveries would wait until a clock that was set back is there again; and one that
-- was set forward would end every task under way: its lease and its deadline would be over at once. Returns by how many
-- milliseconds; null: it was not.
--
-- A clock was set forward where more time has passed for the database than for the process that looks. A process that has
-- not looked before cannot know that: what became due while no process lived is due. What a process holds a lease of is
-- not taken from it: set back, its lease ends when one that begins now would, set forward it is moved; a process that lives
-- renews it. Deadlines, and the beginnings from which ages count, are moved in both directions. Other pauses are moved
-- back only; after a clock was set forward they end early, and what was planned since a clock was set back is due too
-- early too. Both do no harm.
--
-- Parameters
--   p_task_lease_ms, p_delivery_lease_ms
--                         How long a lease of a task and of a delivery lasts.
--   p_tolerated_ms        Less than that is nothing: clocks are corrected by as much all the time.
--   p_elapsed_ms          How long ago this process last looked, by its monotonic clock; null: never.
--
-- Locks: the row of clock_mark, then tasks, deliveries, endpoints, alerts and files that wait. SQL, because only the
-- database's clock counts.
create or replace function clock_follow(
  p_task_lease_ms integer, p_delivery_lease_ms integer, p_tolerated_ms integer,
  p_elapsed_ms bigint default null,
  out set_back_ms bigint, out set_forward_ms bigint
)
language plpgsql
as $$
declare
  v_mark timestamptz;
  v_now timestamptz;
  v_back interval;
  v_forward interval;
  v_begun timestamptz;
  v_tolerated interval := p_tolerated_ms * interval '1 ms';
  v_lease interval := p_task_lease_ms * interval '1 ms';
  v_delivery_lease interval := p_delivery_lease_ms * interval '1 ms';
begin
  insert into clock_mark (time) values (clock_timestamp()) on conflict do nothing;
  select m.time into v_mark from clock_mark m for update;
  v_now := clock_timestamp();
  update clock_mark set time = v_now;
  v_back := v_mark - v_now;
  -- The mark is at least as young as the look of this process: another one may have followed the step already.
  v_begun := v_mark + p_elapsed_ms * interval '1 ms';
  v_forward := v_now - v_begun;

  if v_back > v_tolerated then
    set_back_ms := floor(extract(epoch from v_back) * 1000);
    update task t set
        lease_until = case when t.lease_until is not null then least(t.lease_until, v_now + v_lease) end,
        next_time = case when t.lease_until is null then t.next_time - v_back else least(t.next_time, v_now + v_lease) end,
        -- Of a task that began since then, the deadline is right.
        deadline = case when coalesce(t.start_time, t.create_time) > v_now then t.deadline - v_back else t.deadline end,
        attempt_time = case when t.attempt_time > v_now then t.attempt_time - v_back else t.attempt_time end
      where (t.finish_time is null or t.is_trailing)
        and (t.next_time > v_now or coalesce(t.start_time, t.create_time) > v_now);
    update webhook_delivery d set due = d.due - v_back where d.state = 1 and d.due > v_now;
    update webhook_delivery d set lease_until = v_now + v_delivery_lease
      where d.state = 2 and d.lease_until > v_now + v_delivery_lease;
    update webhook_endpoint e set open_until = e.open_until - v_back where e.open_until > v_now;
    update webhook_endpoint e set failing_since = e.failing_since - v_back where e.failing_since > v_now;
    update alert a set email_due = a.email_due - v_back where a.email_due > v_now;
  elsif v_forward > v_tolerated then
    set_forward_ms := floor(extract(epoch from v_forward) * 1000);
    -- A lease that was given since the step ends in the future. One that was over before the step stays over.
    update task t set
        lease_until = case when t.lease_until > v_mark and t.lease_until <= v_now
          then greatest(t.lease_until + v_forward, v_now + v_lease) else t.lease_until end,
        next_time = case when t.lease_until > v_mark and t.lease_until <= v_now
          then greatest(t.lease_until + v_forward, v_now + v_lease) else t.next_time end,
        -- Of a task that began since the step, the deadline is right.
        deadline = t.deadline + v_forward,
        attempt_time = case when t.attempt_time <= v_begun then t.attempt_time + v_forward else t.attempt_time end
      where (t.finish_time is null or t.is_trailing) and coalesce(t.start_time, t.create_time) <= v_begun;
    update webhook_delivery d set lease_until = v_now + v_delivery_lease
      where d.state = 2 and d.lease_until > v_mark and d.lease_until <= v_now;
    update webhook_endpoint e set failing_since = e.failing_since + v_forward where e.failing_since <= v_begun;
    -- What is being stored at this moment. Whoever has an address was told when it expires.
    update result_file f set expire_time = f.expire_time + v_forward
      where not f.ready and f.expire_time > v_mark and f.expire_time <= v_now;
  end if;
end $$;
