-- Trigger on ledger_entry: refuses UPDATE, DELETE and TRUNCATE.
--
-- Entries are append-only, whatever a program or a person at a prompt tries. Locks: none.
create or replace function ledger_entry_refuse() returns trigger
language plpgsql
as $$
begin
  raise exception 'ledger entries are append-only: book a correction instead'
    using errcode = 'restrict_violation';
end $$;
