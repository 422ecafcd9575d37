-- Records that a process is alive. Returns whether it had been marked as dead meanwhile.
--
-- A process that was marked as dead and comes back is alive again: its open holds stay open, and
-- holds that were settled for it are corrected when their calls settle. A gap of half of
-- p_silent_ms means that the process missed heartbeats: steady_time, since when it has been in
-- touch, restarts. After the clock was set back it is at most now: otherwise no process could mark
-- others.
--
-- Locks: the row of the process. SQL, because only the database's clock counts.
create or replace function ledger_heartbeat(
  p_node uuid, p_name text, p_silent_ms integer,
  out revived boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  select n.ended is not null into revived from node n where n.id = p_node for update;
  revived := coalesce(revived, false);
  insert into node as n (id, name, start_time, seen_time, steady_time)
    values (p_node, p_name, clock_timestamp(), clock_timestamp(), clock_timestamp())
    on conflict (id) do update set seen_time = clock_timestamp(), ended = null,
      steady_time = case when n.ended is null
          and n.seen_time >= clock_timestamp() - p_silent_ms * interval '0.5 ms'
        then least(n.steady_time, clock_timestamp()) else clock_timestamp() end;
end $$;
