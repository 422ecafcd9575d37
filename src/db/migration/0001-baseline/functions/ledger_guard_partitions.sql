-- Gives every partition of ledger_charge and ledger_side a trigger that refuses TRUNCATE.
--
-- Statement triggers are not inherited by partitions. Called after partitions were created.
--
-- Locks: each partition without the trigger, as CREATE TRIGGER does.
create or replace function ledger_guard_partitions() returns void
language plpgsql
as $$
declare
  v_table regclass;
begin
  for v_table in
    select i.inhrelid::regclass from pg_inherits i
      where i.inhparent in ('ledger_charge'::regclass, 'ledger_side'::regclass) and not exists (
        select from pg_trigger t
          where t.tgrelid = i.inhrelid and t.tgname = 'ledger_no_truncate')
  loop
    execute format('create trigger ledger_no_truncate before truncate on %s '
      'for each statement execute function ledger_entry_refuse()', v_table);
  end loop;
end $$;
