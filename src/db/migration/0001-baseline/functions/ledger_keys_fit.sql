-- Whether the holds of a batch fit into the remaining limits of their keys, all of them together.
--
-- Called by ledger_apply; if they do not fit, ledger_admit makes the holds one by one.
--
-- Locks: none; the caller has locked the account's balance row, which protects the keys.
create or replace function ledger_keys_fit(p_keys uuid[], p_amounts bigint[],
  p_limits bigint[]) returns boolean
language sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
  select not exists (
    select from (
      select key_id, sum(amount) as amount, min(key_limit) as key_limit
        from unnest(p_keys, p_amounts, p_limits) as t(key_id, amount, key_limit) group by key_id
    ) t left join key_spend k on k.key_id = t.key_id
    where t.key_limit is not null
      and t.amount > greatest(t.key_limit - coalesce(k.spent + k.held, 0), 0))
$$;
