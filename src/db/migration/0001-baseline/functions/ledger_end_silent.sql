-- Marks processes as ended that have been silent for p_silent_ms, and returns all processes that
-- ended within the last hour: their holds must be settled for them.
--
-- Only a process (p_node) that has itself been in touch for that long may mark others; otherwise an
-- outage of the database would end them all. The hour is longer than the lifetime of a hold without
-- renewal. A statement of an ended process may still be running, and the process that ended it may
-- die before it has settled the holds. Rows of processes that ended a day ago are deleted.
--
-- A heartbeat in the future was written before the clock was set back: the silence counts from now
-- on. Otherwise the holds of a dead process would stay open until the clock reaches that time.
--
-- Locks: the rows of node that it changes or deletes. SQL, because only the database's clock
-- counts.
create or replace function ledger_end_silent(p_node uuid, p_silent_ms integer) returns uuid[]
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_silent interval := p_silent_ms * interval '1 ms';
begin
  update node n set seen_time = clock_timestamp()
    where n.ended is null and n.seen_time > clock_timestamp() + v_silent;
  update node n set ended = clock_timestamp()
    where n.ended is null and n.id <> p_node and n.seen_time < clock_timestamp() - v_silent
      and exists (select from node me where me.id = p_node and me.ended is null
        and me.steady_time <= clock_timestamp() - v_silent
        and me.seen_time >= clock_timestamp() - v_silent / 2);
  delete from node n where n.ended < clock_timestamp() - interval '1 day';
  return (select array_agg(n.id) from node n where n.ended > clock_timestamp() - interval '1 hour');
end $$;
