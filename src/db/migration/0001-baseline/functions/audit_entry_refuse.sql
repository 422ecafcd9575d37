-- Trigger on audit_entry: refuses UPDATE, DELETE and TRUNCATE.
--
-- The log of operators' actions is append-only, for programs and for manual statements. Locks:
-- none.
create or replace function audit_entry_refuse() returns trigger
language plpgsql
as $$
begin
  raise exception 'the log of operators'' actions is append-only' using errcode = 'restrict_violation';
end $$;
