-- Grows holds of running calls and stores their checkpoints. Called by ledger_apply.
--
-- p_amounts: the requested amount of each hold. A hold receives the growth that the balance, the
-- key's limit and the budgets allow, in the order of the extensions, and occurs once in a batch.
-- p_checkpoints: [{ id, cost, record }], the cost of each call if it ended now; the call is settled
-- with it if its process dies. p_now: when growth is counted in budgets; null if the account has
-- none.
--
-- Returns one verdict for each extension if any differs from the request (see ledger_apply), and
-- the sum by which the holds grew.
--
-- Locks, in this order: the caller has locked the account's balance row; holds; keys (key_spend);
-- budgets. SQL, because the answer to one extension determines the amount available for the next
-- one.
create or replace function ledger_extend(
  p_account uuid, p_ids uuid[], p_amounts bigint[], p_checkpoints json, p_available bigint,
  p_now timestamptz,
  out verdicts text, out grown bigint
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_row record;
  v_growth bigint;
  v_is_plain boolean := true;
  v_words text[] := '{}';
  v_ids uuid[] := '{}';
  v_growths bigint[] := '{}';
begin
  grown := 0;
  for v_row in
    select t.amount, h.id, h.amount as held, h.key_id, h.key_limit, h.budget_time
      from unnest(p_ids, p_amounts) with ordinality as t(id, amount, n)
        left join open_hold h on h.id = t.id and h.account_id = p_account
      order by t.n
  loop
    if v_row.id is null then
      v_words := v_words || 'c'::text;
      v_is_plain := false;
      continue;
    end if;
    v_growth := least(greatest(v_row.amount - v_row.held, 0), p_available - grown);
    if v_growth > 0 and v_row.key_limit is not null then
      select least(v_growth, greatest(v_row.key_limit - k.spent - k.held, 0)) into v_growth
        from key_spend k where k.key_id = v_row.key_id;
    end if;
    if v_growth > 0 and p_now is not null then
      v_growth := ledger_budget_extend(p_account, v_row.key_id, v_row.held, v_row.budget_time,
        v_growth);
    end if;
    if v_growth > 0 and v_row.key_limit is not null then
      update key_spend k set held = k.held + v_growth where k.key_id = v_row.key_id;
    end if;
    v_words := v_words || (v_row.held + v_growth)::text;
    v_is_plain := v_is_plain and v_row.held + v_growth = v_row.amount;
    if v_growth > 0 then
      v_ids := v_ids || v_row.id;
      v_growths := v_growths || v_growth;
      grown := grown + v_growth;
    end if;
  end loop;
  if not v_is_plain then verdicts := array_to_string(v_words, ','); end if;

  if grown > 0 then
    with steps as (
      update open_hold h set amount = h.amount + g.growth, steps = coalesce(h.steps, 0) + 1,
          budget_time = coalesce(p_now, h.budget_time)
        from unnest(v_ids, v_growths) as g(id, growth) where h.id = g.id
        returning h.id, h.steps, g.growth, h.key_id, h.key_limit
    ), spent as (
      update key_spend k set held = k.held + s.growth
        from (select key_id, sum(growth)::bigint as growth from steps
          where key_id is not null and key_limit is null group by key_id) s
        where k.key_id = s.key_id
    ) insert into hold_step (hold_id, n, amount) select id, steps, growth from steps;
  end if;

  if p_checkpoints is not null then
    with told as (
      insert into hold_checkpoint (hold_id, cost, record)
        select c.id, c.cost, c.record
          from json_to_recordset(p_checkpoints) as c(id uuid, cost bigint, record json)
            join open_hold h on h.id = c.id and h.account_id = p_account
        on conflict (hold_id) do update set cost = excluded.cost,
          record = coalesce(excluded.record, hold_checkpoint.record)
        returning hold_id
    ) update open_hold h set checkpointed = true from told
        where h.id = told.hold_id and h.checkpointed is not true;
  end if;
end $$;
