-- The newest id: p_newest (null: none yet) or one of p_ids.
--
-- Locks: none.
create or replace function ledger_newest(p_newest uuid, p_ids uuid[]) returns uuid
language plpgsql immutable
as $$
begin
  -- Ids arrive nearly in their order: the last one is nearly always the newest.
  if p_ids[cardinality(p_ids)] >= all(p_ids) then
    return greatest(p_newest, p_ids[cardinality(p_ids)]);
  end if;
  return greatest(p_newest, (select id from unnest(p_ids) as id order by id desc limit 1));
end $$;
