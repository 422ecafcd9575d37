-- The call records of a batch of ledger_apply, as rows of call. The comment of that function
-- describes the parameters.
--
-- A function of one query without settings, so that the planner inlines it: a call adds no cost.
-- `unnest` of texts is in the select list: in `from` each array would fill a tuplestore. Numbers
-- are read by subscript; in an array of texts, reading a member requires a walk over the array. The
-- columns of a kind are named: `(kind).*` of a composite value took 1 us more per call.
--
-- Locks: none.
create or replace function ledger_call_rows(
  p_account uuid, p_ids uuid[], p_costs bigint[], p_vendor_costs bigint[],
  p_kinds call_kind[], p_kind integer[],
  p_request_id text[], p_upstream_request_id text[],
  p_input_tokens integer[], p_cached_input_tokens integer[], p_cache_write_tokens integer[],
  p_output_tokens integer[], p_reasoning_tokens integer[],
  p_held bigint[], p_duration_ms integer[], p_first_byte_ms integer[], p_start_time timestamptz[]
) returns setof call
language sql stable
as $$
  select p_ids[s.n], p_account, s.request_id, s.upstream_request_id,
      coalesce(p_input_tokens[s.n], 0), coalesce(p_cached_input_tokens[s.n], 0),
      coalesce(p_cache_write_tokens[s.n], 0), coalesce(p_output_tokens[s.n], 0),
      coalesce(p_reasoning_tokens[s.n], 0), p_costs[s.n], p_held[s.n], p_start_time[s.n],
      coalesce(p_duration_ms[s.n], 0), coalesce(p_first_byte_ms[s.n], 0), p_vendor_costs[s.n],
      c.key_id, c.model, c.vendor, c.path, c.stream, c.status, c.error_code, c.ending,
      c.usage_source, c.price_version, c.dropped, c.discount_bp, c.charged, c.images,
      c.second_micros, c.attempts, c.units
    from (select generate_subscripts(p_ids, 1) as n, unnest(p_request_id) as request_id,
        unnest(p_upstream_request_id) as upstream_request_id) s
      join unnest(p_kinds) with ordinality c on c.ordinality = coalesce(p_kind[s.n], 1)
$$;
