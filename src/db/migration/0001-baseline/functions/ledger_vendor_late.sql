-- Books a vendor's charge for a call that had already ended, once. The customer does not pay for
-- it.
--
-- Verdicts: booked; replayed (a vendor's cost of the call is booked already); unknown (no such
-- hold, or it is open: its settlement will contain the cost).
--
-- Locks, in this order: the account's balance row, under which no other function settles the call.
-- SQL, because check and entries must see one state.
create or replace function ledger_vendor_late(
  p_account uuid, p_call uuid, p_cost bigint,
  out verdict text
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_txn uuid := ledger_uuid();
  v_seq bigint;
begin
  perform from balance b where b.account_id = p_account for update;
  v_seq := nextval('ledger_entry_seq');
  -- The call was free for the customer. It now has a cost for the operator: that is a charge, and
  -- stays in the ledger.
  with released as (
    delete from released_hold r where r.account_id = p_account and r.id = p_call and p_cost > 0
      returning r.id, r.held, r.key_id, r.steps
  )
  insert into ledger_charge (id, account_id, seq, cost, paid, balance_after, vendor_cost, held, key_id, steps)
    select r.id, p_account, v_seq, 0, 0, b.available + b.held, p_cost, r.held, r.key_id,
        r.steps
      from released r, balance b where b.account_id = p_account;
  if found then
    update call c set vendor_cost = p_cost where c.id = p_call and c.account_id = p_account;
    verdict := 'booked';
    return;
  end if;
  perform from hold h where h.id = p_call and h.account_id = p_account and h.state in (2, 3);
  if not found then
    verdict := 'unknown';
    return;
  end if;
  if exists (select from ledger_entry e where e.txn_id = p_call and e.account_id = p_account and e.account = 8)
    or exists (select from ledger_side e where e.call_id = p_call and e.account = 8) then
    verdict := 'replayed';
    return;
  end if;
  insert into ledger_side (txn_id, account, account_id, kind, amount, call_id, seq)
    values (v_txn, 7, p_account, 6, -p_cost, p_call, v_seq), (v_txn, 8, p_account, 6, p_cost, p_call, v_seq);
  update call c set vendor_cost = p_cost where c.id = p_call and c.account_id = p_account;
  verdict := 'booked';
end $$;
