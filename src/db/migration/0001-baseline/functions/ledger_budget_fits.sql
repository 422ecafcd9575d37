-- Whether the holds of a batch fit into the budgets of their account and their keys, all of them
-- together.
--
-- p_key: the key of all holds; null if p_keys has one for each. Called by ledger_apply; if they do
-- not fit, ledger_admit makes the holds one by one.
--
-- Locks: none; the caller has locked the account's balance row, which protects the budgets.
create or replace function ledger_budget_fits(
  p_account uuid, p_key uuid, p_keys uuid[], p_amounts bigint[]
) returns boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
  return not exists (
    select from budget b
      where b.owner_id = any(p_keys || p_account)
        and greatest(b.amount - b.spent - b.held, 0) < (
          select coalesce(sum(t.amount), 0) from unnest(p_keys, p_amounts) as t(key_id, amount)
            where b.owner_id in (p_account, coalesce(t.key_id, p_key))));
end $$;
