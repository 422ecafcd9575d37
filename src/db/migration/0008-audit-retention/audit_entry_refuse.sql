-- Trigger on audit_entry: refuses UPDATE, DELETE and TRUNCATE.
--
-- The log of operators' actions is append-only, for programs and for manual statements. The only
-- exception are rows that retention removes: its transaction sets uas.retention. Locks: none.
create or replace function audit_entry_refuse() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'DELETE' and current_setting('uas.retention', true) = 'audit_entry' then
    return null;
  end if;
  raise exception 'the log of operators'' actions is append-only' using errcode = 'restrict_violation';
end $$;
