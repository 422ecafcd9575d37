-- The triggers: rules that hold for every writer, and notifications of all changes, including
-- manual ones. Their functions: src/db/sql/.

create trigger account_stamp before update on account
  for each row execute function account_stamp();
create trigger account_low_balance after update of low_balance_threshold on account
  for each row when (old.low_balance_threshold is distinct from new.low_balance_threshold)
  execute function account_low_balance();

-- An account's state and discount are part of every process's cache of its keys. A new account has
-- no key yet.
create trigger account_notice after update or delete on account
  for each row execute function api_key_notice();
create trigger account_truncate_notice after truncate on account
  for each statement execute function api_key_notice();

create trigger api_key_stamp before insert or update on api_key
  for each row execute function api_key_stamp();
create trigger api_key_notice after insert or update or delete on api_key
  for each row execute function api_key_notice();
create trigger api_key_truncate_notice after truncate on api_key
  for each statement execute function api_key_notice();
create trigger key_copy_wipe after update of state on api_key
  for each row when (new.state = 3) execute function key_copy_wipe();
create trigger key_copy_wipe_deleted after delete on api_key
  for each row execute function key_copy_wipe();

create trigger hold_step_append_only before update or delete on hold_step
  for each row execute function hold_step_refuse();
create trigger ledger_charge_append_only before update or delete on ledger_charge
  for each row execute function ledger_entry_refuse();
create trigger ledger_side_append_only before update or delete on ledger_side
  for each row execute function ledger_entry_refuse();
create trigger ledger_no_truncate before truncate on ledger_charge
  for each statement execute function ledger_entry_refuse();
create trigger ledger_no_truncate before truncate on ledger_side
  for each statement execute function ledger_entry_refuse();
select ledger_guard_partitions();
create trigger ledger_checkpoint_append_only before update or delete or truncate on ledger_checkpoint
  for each statement execute function ledger_entry_refuse();

-- The writers count new records: ledger_apply and call_write.
create trigger call_delete_usage after delete on call
  referencing old table as changed_calls for each statement execute function call_count_usage('-1');
create trigger call_update_usage_added after update on call
  referencing new table as changed_calls for each statement execute function call_count_usage('1');
create trigger call_update_usage_removed after update on call
  referencing old table as changed_calls for each statement execute function call_count_usage('-1');

create trigger response_event_gone after delete on stored_response
  for each row when (old.task_id is not null) execute function response_event_gone();

create trigger task_guard before update on task
  for each row execute function task_guard();
create trigger task_notice after update on task
  for each row when (new.version <> old.version) execute function task_notice();
create trigger task_event_guard before update or delete on task_event
  for each row execute function task_event_guard();

create trigger audit_entry_append_only before update or delete or truncate on audit_entry
  for each statement execute function audit_entry_refuse();
