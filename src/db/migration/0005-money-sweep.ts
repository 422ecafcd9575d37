/** Processes that live, processes that are lost, and what becomes of their holds. */
import { planSettings } from "./0005-money-apply.ts";

/**
 * A process tells that it lives. Whoever was taken for dead meanwhile is alive again: its holds that are
 * still open stay open, those that were ended for it are corrected when their calls settle. Returns whether
 * it was.
 * A gap of half the silence is none of the process's own beats missed: the time of being in touch begins anew.
 */
const heartbeat = `
create function ledger_heartbeat(p_node uuid, p_name text, p_silent_ms integer, out revived boolean)
language plpgsql ${planSettings} as $$
begin
  select n.ended is not null into revived from node n where n.id = p_node for update;
  revived := coalesce(revived, false);
  insert into node as n (id, name, start_time, seen_time, steady_time)
    values (p_node, p_name, clock_timestamp(), clock_timestamp(), clock_timestamp())
    on conflict (id) do update set seen_time = clock_timestamp(), ended = null,
      steady_time = case when n.ended is null
          and n.seen_time >= clock_timestamp() - p_silent_ms * interval '0.5 ms'
        then n.steady_time else clock_timestamp() end;
end $$`;

/**
 * Ends the processes that have been silent for too long, as seen by one that has been in touch for as long
 * itself. Returns those whose holds are to be looked for: a statement of a dead process may still be under
 * way, and whoever ended it may die before it has swept, so it is looked again for longer than a hold lives
 * that nobody renews. Forgets those that ended a day ago.
 */
const endSilent = `
create function ledger_end_silent(p_node uuid, p_silent_ms integer) returns uuid[]
language plpgsql ${planSettings} as $$
declare
  v_silent interval := p_silent_ms * interval '1 ms';
begin
  update node n set ended = clock_timestamp()
    where n.ended is null and n.id <> p_node and n.seen_time < clock_timestamp() - v_silent
      and exists (select from node me where me.id = p_node and me.ended is null
        and me.steady_time <= clock_timestamp() - v_silent
        and me.seen_time >= clock_timestamp() - v_silent / 2);
  delete from node n where n.ended < clock_timestamp() - interval '1 day';
  return (select array_agg(n.id) from node n where n.ended > clock_timestamp() - interval '1 hour');
end $$`;

/**
 * The records of calls whose process was lost: what their checkpoints say, else that they were lost. A
 * checkpoint's record may be one that this database cannot read: p_bare leaves them all out.
 */
const lostCalls = `
create function ledger_lost_calls(p_ids uuid[], p_bare boolean) returns json
language sql ${planSettings} as $$
  select json_agg(
      case when p_bare or c.record is null then jsonb_build_object(
        'request_id', '', 'key_id', coalesce(h.key_id::text, ''), 'model', '', 'vendor', '',
        'path', '', 'stream', false, 'status', 0, 'error_code', '', 'usage_source', 0,
        'input_tokens', 0, 'cached_input_tokens', 0, 'cache_write_tokens', 0, 'output_tokens', 0,
        'reasoning_tokens', 0, 'price_version', '', 'first_byte_ms', 0, 'upstream_request_id', '',
        'dropped', '',
        'start_time', t.start_time,
        'duration_ms', greatest(0, least(2147483647,
          floor(extract(epoch from clock_timestamp() - t.start_time) * 1000))))
      else c.record::jsonb end
      || jsonb_build_object('id', h.id, 'account_id', h.account_id, 'ending', 9,
        'held', h.amount::text, 'cost', coalesce(c.cost, 0)::text))
    from hold h left join hold_checkpoint c on c.hold_id = h.id
      cross join lateral (select to_timestamp(
        ('x' || left(replace(h.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) as start_time) t
    where h.id = any(p_ids)
$$`;

/**
 * Ends holds of one account that have expired or whose process has ended: settled at their checkpoint, and
 * released where they have none. The account is locked first, as everywhere. Returns how many, and what
 * the account has where that took it below its threshold.
 * The limit on locks: one stuck account must not keep the sweep from the others.
 */
const sweep = `
create function ledger_sweep_holds(
  p_account uuid, p_ids uuid[], out ended integer, out low_balance bigint
) language plpgsql set lock_timeout = '1s' ${planSettings} as $$
declare
  v_ids uuid[];
  v_costs bigint[];
  v_vendor_costs bigint[];
begin
  perform from balance b where b.account_id = p_account for update;
  select array_agg(s.id order by s.id) into v_ids from (
    select h.id from hold h
      where h.id = any(p_ids) and h.account_id = p_account and h.state + 0 = 1
        and (h.expires_at < clock_timestamp()
          or exists (select from node n where n.id = h.node_id and n.ended is not null))
      order by h.id for update of h skip locked) s;
  ended := coalesce(cardinality(v_ids), 0);
  if ended = 0 then return; end if;
  select array_agg(coalesce(c.cost, 0) order by t.n) into v_costs
    from unnest(v_ids) with ordinality as t(id, n) left join hold_checkpoint c on c.hold_id = t.id;
  begin
    select array_agg((c.record->>'vendor_cost')::bigint order by t.n) into v_vendor_costs
      from unnest(v_ids) with ordinality as t(id, n) left join hold_checkpoint c on c.hold_id = t.id;
    select a.low_balance into low_balance from ledger_apply(p_account, null, null, v_ids, v_costs,
      v_vendor_costs, ledger_lost_calls(v_ids, false), null, null, null, null, null, null, null, 0) a;
  exception when data_exception or integrity_constraint_violation then
    select a.low_balance into low_balance from ledger_apply(p_account, null, null, v_ids, v_costs,
      null, ledger_lost_calls(v_ids, true), null, null, null, null, null, null, null, 0) a;
  end;
  update hold set state = 4, swept = true where id = any(v_ids);
end $$;
create or replace function ledger_sweep(p_account uuid, p_ids uuid[]) returns integer language sql as $$
  select ended from ledger_sweep_holds(p_account, p_ids)
$$`;

/** In the order of their creation. */
export const sweepFunctions: readonly string[] = [heartbeat, endSilent, lostCalls, sweep];
