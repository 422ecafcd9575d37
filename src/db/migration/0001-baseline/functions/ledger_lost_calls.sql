-- The records of calls whose process was lost: the record of their checkpoint, otherwise one that
-- marks the call as lost (ending 9).
--
-- p_bare: use no checkpoint's record. A record that this database cannot read must not keep the
-- hold open.
--
-- Locks: none; the caller has locked the account's balance row and the holds.
create or replace function ledger_lost_calls(p_ids uuid[], p_bare boolean) returns json
language sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
  select json_agg(
      case when p_bare or c.record is null then jsonb_build_object(
        'request_id', coalesce(h.request_id, ''), 'key_id', coalesce(h.key_id::text, ''), 'model',
          '', 'vendor', '',
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
    from open_hold h left join hold_checkpoint c on c.hold_id = h.id
      cross join lateral (select to_timestamp(
        ('x' || left(replace(h.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0) as start_time) t
    where h.id = any(p_ids)
$$;
