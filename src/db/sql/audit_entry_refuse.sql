-- Trigger on audit_entry: refuses UPDATE, DELETE and TRUNCATE.
--
-- The log of operators' actions is append-only, for programs and for manual statements. There are
-- two exceptions. The transaction of retention sets uas.retention, and deletes old rows. The
-- transaction that erases an account sets uas.erasure, and removes personal data from rows. Locks:
-- none.
create or replace function audit_entry_refuse() returns trigger
language plpgsql
as $$
begin
  if tg_op = 'DELETE' and current_setting('uas.retention', true) = 'audit_entry' then
    return null;
  end if;
  if tg_op = 'UPDATE' and current_setting('uas.erasure', true) = 'audit_entry' then
    return null;
  end if;
  raise exception 'the log of operators'' actions is append-only' using errcode = 'restrict_violation';
end $$;
