-- Ends holds of one account that have expired or whose process has ended: settled at their
-- checkpoint, or released if they have none. Returns their number, the balance if it fell below the
-- account's threshold, and the amount that the account could not pay, if more than 0.
--
-- Locked holds are being settled and are skipped. The records are written here, not by
-- ledger_apply: each may be a whole record from a checkpoint.
--
-- Locks, in this order: the account's balance row, its holds, its keys (key_spend). The wait for a
-- lock is limited: one blocked account must not delay the recovery of the others. SQL, because only
-- the database's clock decides.
create or replace function ledger_recover_holds(
  p_account uuid, p_ids uuid[],
  out ended integer, out low_balance bigint, out platform_loss bigint
)
language plpgsql
set lock_timeout = '1s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_ids uuid[];
  v_costs bigint[];
  v_vendor_costs bigint[];
  v_calls json;
begin
  perform from balance b where b.account_id = p_account for update;
  select array_agg(s.id order by s.id) into v_ids from (
    select h.id from open_hold h
      where h.id = any(p_ids) and h.account_id = p_account
        and (h.expires_at < clock_timestamp()
          or exists (select from node n where n.id = h.node_id and n.ended is not null))
      order by h.id for update of h skip locked) s;
  ended := coalesce(cardinality(v_ids), 0);
  if ended = 0 then return; end if;
  select array_agg(coalesce(c.cost, 0) order by t.n) into v_costs
    from unnest(v_ids) with ordinality as t(id, n) left join hold_checkpoint c on c.hold_id = t.id;
  begin
    v_calls := ledger_lost_calls(v_ids, false);
    select array_agg((c.record->>'vendor_cost')::bigint order by t.n) into v_vendor_costs
      from unnest(v_ids) with ordinality as t(id, n) left join hold_checkpoint c on c.hold_id = t.id;
    select a.low_balance, a.platform_loss into low_balance, platform_loss
      from ledger_apply(p_account, p_settle_ids => v_ids, p_settle_costs => v_costs,
        p_vendor_costs => v_vendor_costs, p_expired => true) a;
    perform call_write(v_calls);
  exception when data_exception or integrity_constraint_violation then
    -- The record of a checkpoint cannot be read: the calls are recorded without their checkpoints.
    v_calls := ledger_lost_calls(v_ids, true);
    select a.low_balance, a.platform_loss into low_balance, platform_loss
      from ledger_apply(p_account, p_settle_ids => v_ids, p_settle_costs => v_costs, p_expired => true) a;
    perform call_write(v_calls);
  end;
end $$;
