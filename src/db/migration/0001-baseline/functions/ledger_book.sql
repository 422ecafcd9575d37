-- Books money that does not belong to a running call, once per account and reference: a top-up
-- (kind 1), a refund (3), an adjustment (4, of either sign, with its reason) or a promotion (5).
--
-- Verdicts: booked; replayed (booked before, with the same content); reused (booked before, with
-- other content); missing (no such charge to refund); exceeded (more than the rest of the charge:
-- remaining); short (more than the available balance: remaining); full (the balance would not fit
-- into a bigint). low_balance: as in ledger_apply.
--
-- Locks, in this order: the account's balance row. SQL, because the checks and the entries must see
-- one state of the balance.
create or replace function ledger_book(
  p_account uuid, p_kind smallint, p_txn uuid, p_amount bigint, p_reference text, p_call uuid,
  p_reason text,
  out verdict text, out available bigint, out held bigint, out remaining bigint,
  out low_balance bigint
)
language plpgsql
as $$
declare
  v_old booking;
  v_low bigint;
  v_seq bigint;
begin
  insert into balance (account_id) values (p_account) on conflict do nothing;
  select b.available, b.held, b.low_below into available, held, v_low
    from balance b where b.account_id = p_account for update;
  select * into v_old from booking k where k.account_id = p_account and k.reference = p_reference;
  if found then
    verdict := case when v_old.kind = p_kind and v_old.amount = p_amount
      and v_old.call_id is not distinct from p_call
      and v_old.reason is not distinct from p_reason then 'replayed' else 'reused' end;
    return;
  end if;
  if p_kind = 3 then
    select coalesce(-sum(e.amount), 0) into remaining from ledger_entry e
      where e.account = 1 and e.account_id = p_account and e.txn_id in (
        select p_call union all select c.txn_id from ledger_entry c where c.call_id = p_call)
        and e.kind in (2, 6) and coalesce(e.call_id, e.txn_id) = p_call;
    if remaining = 0 then remaining := null; verdict := 'missing'; return; end if;
    remaining := remaining - coalesce((select sum(k.amount) from booking k where k.call_id = p_call), 0);
    if p_amount > remaining then verdict := 'exceeded'; return; end if;
  end if;
  if p_amount > 9223372036854775807 - available - held then verdict := 'full'; return; end if;
  if p_amount < -available then remaining := available; verdict := 'short'; return; end if;
  insert into booking (account_id, reference, kind, txn_id, amount, call_id, reason)
    values (p_account, p_reference, p_kind, p_txn, p_amount, p_call, p_reason);
  v_seq := nextval('ledger_entry_seq');
  insert into ledger_side (txn_id, account, account_id, kind, amount, reference, balance_after, seq) values
    (p_txn, 1, p_account, p_kind, p_amount, p_reference, available + held + p_amount, v_seq),
    (p_txn, case p_kind when 1 then 3 when 3 then 5 when 4 then 6 else 4 end, p_account, p_kind,
      -p_amount, p_reference, null, v_seq);
  if available + held >= v_low and available + held + p_amount < v_low then
    low_balance := available + held + p_amount;
    perform alert_low_balance(p_account, low_balance, v_low);
  end if;
  available := available + p_amount;
  update balance b set available = ledger_book.available where b.account_id = p_account;
  verdict := 'booked';
end $$;
