-- Trigger on ledger_charge, ledger_side and ledger_checkpoint: refuses UPDATE, DELETE and TRUNCATE.
--
-- All are append-only, whatever a program or a person at a prompt tries. Locks: none.
create or replace function ledger_entry_refuse() returns trigger
language plpgsql
as $$
begin
  raise exception 'ledger entries and checkpoints are append-only: book a correction instead'
    using errcode = 'restrict_violation';
end $$;
