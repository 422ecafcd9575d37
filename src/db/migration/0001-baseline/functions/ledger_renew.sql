-- Renews the holds of running calls: they expire p_ttl_ms from now. Returns their number.
--
-- A locked hold is being settled and is skipped: renewal never waits.
--
-- Locks: the holds, in the order of their ids. SQL, because only the database's clock counts.
create or replace function ledger_renew(p_ids uuid[], p_ttl_ms integer) returns integer
language sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
  with live as (
    select id from open_hold where id = any(p_ids) order by id for update skip locked
  ), renewed as (
    update open_hold h set expires_at = clock_timestamp() + p_ttl_ms * interval '1 ms'
      from live where h.id = live.id returning h.id
  ) select count(*)::integer from renewed
$$;
