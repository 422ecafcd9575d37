-- Trigger on ledger_charge, ledger_side and ledger_checkpoint: refuses UPDATE, DELETE and TRUNCATE.
--
-- All are append-only, for programs and for manual statements. Locks: none.
create or replace function ledger_entry_refuse() returns trigger
language plpgsql
as $$
begin
  raise exception 'ledger entries and checkpoints are append-only: book a correction instead'
    using errcode = 'restrict_violation';
end $$;
