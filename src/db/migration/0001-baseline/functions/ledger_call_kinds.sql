-- The common parts of the call records of a batch of ledger_apply, one row for each kind.
--
-- Locks: none.
create or replace function ledger_call_kinds(p_kinds json) returns call_kind[]
language sql stable
as $$
  select array(select k from json_populate_recordset(null::call_kind,
    case json_typeof(p_kinds) when 'object' then json_build_array(p_kinds) else p_kinds end) k)
$$;
