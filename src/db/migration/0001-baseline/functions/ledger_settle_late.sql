-- Settles one call whose hold was ended for a process that was marked as dead
-- (ledger_charge.expired). Returns the available balance afterwards, and the part of the correction
-- that the account cannot pay. A value below 0 means that it pays more of the charge than before.
-- No money is held for the call any longer.
--
-- The actual cost replaces the charge: as the call's charge if none was booked yet, otherwise by a
-- correction with a new id that refers to the call. A refund that the customer received is kept,
-- once.
--
-- Called by ledger_settle_odd. Locks, in this order: the caller has locked the account's balance
-- row; the hold; its key (key_spend); budgets; the call.
create or replace function ledger_settle_late(
  p_account uuid, p_id uuid, p_cost bigint, p_vendor bigint, p_available bigint, p_held bigint,
  out available bigint, out platform_loss bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_cost bigint;
  v_key uuid;
  v_time timestamptz;
  v_paid bigint;
  v_vendor bigint;
  v_is_charged boolean;
  v_pays bigint;
  v_txn uuid := p_id;
  v_seq bigint := nextval('ledger_entry_seq');
begin
  select cost, key_id, budget_time into v_cost, v_key, v_time
    from ledger_charge where account_id = p_account and id = p_id;
  select coalesce(-sum(amount) filter (where account = 1), 0),
      coalesce(sum(amount) filter (where account = 8), 0), count(*) > 0
    into v_paid, v_vendor, v_is_charged from ledger_entry
      where txn_id = p_id and account_id = p_account;
  if v_is_charged then v_txn := ledger_uuid(); end if;
  v_pays := greatest(least(p_cost, v_paid + p_available), least(v_paid,
    coalesce((select sum(k.amount) from booking k where k.call_id = p_id), 0)));
  insert into ledger_side (txn_id, account, account_id, kind, amount, balance_after, call_id, seq)
    select v_txn, e.account, p_account, case when v_is_charged then 6 else 2 end, e.amount,
        case e.account when 1 then p_available + p_held + e.amount end,
        case when v_is_charged then p_id end, v_seq
      from (values (1, v_paid - v_pays), (2, p_cost - v_cost), (6, v_pays - v_paid - p_cost + v_cost),
        (7, v_vendor - coalesce(p_vendor, v_vendor)), (8, coalesce(p_vendor, v_vendor) - v_vendor)
      ) as e(account, amount)
      -- The revenue entry is written even without a change: it records that the call has settled.
      where e.amount <> 0 or e.account = 2;
  update key_spend k set spent = k.spent + p_cost - v_cost where k.key_id = v_key;
  update budget b set spent = greatest(b.spent + p_cost - v_cost, 0)
    where b.owner_id = any(array[p_account, v_key]) and b.start_time <= v_time;
  update call set cost = p_cost where id = p_id and account_id = p_account;
  available := p_available + v_paid - v_pays;
  platform_loss := p_cost - v_cost - v_pays + v_paid;
end $$;
