-- Trigger on account: copies the low-balance threshold to the balance row.
--
-- ledger_apply reads the threshold from the row it locks anyway; the account's column is the one
-- that is shown and changed. A trigger, so that a change made by hand counts too.
--
-- Locks: the account's row (by the update that fires the trigger), then its balance row.
create or replace function account_low_balance() returns trigger
language plpgsql
as $$
begin
  insert into balance as b (account_id, low_below) values (new.id, new.low_balance_threshold)
    on conflict (account_id) do update set low_below = excluded.low_below;
  return null;
end $$;
