-- Books a redeem code on an account, once.
--
-- Verdicts: booked; replayed (this account redeemed it before); unknown; taken (by another
-- account); revoked; expired; full (the balance would not fit).
--
-- Locks, in this order: the code, the account's balance row. No function waits for a code while it
-- holds the lock of a balance row. SQL, because code and booking must change together.
create or replace function ledger_redeem(
  p_account uuid, p_hash bytea, p_txn uuid,
  out verdict text, out id uuid, out kind smallint, out amount bigint, out available bigint,
  out held bigint, out low_balance bigint
)
language plpgsql
as $$
declare
  v_code redeem_code;
begin
  select * into v_code from redeem_code c where c.code_hash = p_hash for update;
  if not found then verdict := 'unknown'; return; end if;
  id := v_code.id;
  kind := v_code.kind;
  amount := v_code.amount;
  verdict := case when v_code.account_id <> p_account then 'taken'
    when v_code.revoke_time is not null then 'revoked'
    when v_code.account_id is null and v_code.expire_time <= clock_timestamp() then 'expired' end;
  if verdict is not null then return; end if;
  select b.verdict, b.available, b.held, b.low_balance into verdict, available, held, low_balance
    from ledger_book(p_account, v_code.kind, p_txn, v_code.amount, 'redeem ' || v_code.id, null,
      null) b;
  if verdict = 'booked' then
    update redeem_code c set account_id = p_account, redeem_time = clock_timestamp()
      where c.id = v_code.id;
  end if;
end $$;
