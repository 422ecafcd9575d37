-- Reports that the balance of an account has fallen below its threshold, in the transaction that
-- reduced it.
--
-- Locks: none; the caller has locked the account's balance row, so that each fall is reported once.
create or replace function alert_low_balance(p_account uuid, p_balance bigint, p_threshold bigint)
returns void
language plpgsql
as $$
begin
  insert into alert (id, account_id, kind, facts) values (ledger_uuid(), p_account, 1,
    jsonb_build_object('balance', p_balance::text, 'threshold', p_threshold::text));
end $$;
