-- The settlements of a batch whose hold is not open. Called by ledger_apply.
--
-- - Late: the hold was ended for a process that was marked as dead: see ledger_settle_late.
-- - Never made: charges nothing. The record is written with cost 0, together with a released hold
--   of 0. Neither a repetition nor a late hold can then do harm.
-- - Settled before: nothing.
--
-- p_done: the holds that the batch has settled. p_calls: the records of all settlements of the
-- batch. p_seq: the number of the batch. p_newest: see balance.newest_hold. Returns one verdict for
-- each settlement (see ledger_apply), the available balance afterwards, and the newest hold. It
-- also returns the amount that the account cannot pay of the late ones, if more than 0.
--
-- Locks, in this order: the caller has locked the account's balance row; holds; keys (key_spend);
-- calls.
create or replace function ledger_settle_odd(
  p_account uuid, p_ids uuid[], p_costs bigint[], p_vendor_costs bigint[], p_calls json,
  p_done uuid[], p_available bigint, p_held bigint, p_seq bigint, p_newest uuid,
  out verdicts text, out available bigint, out newest uuid, out platform_loss bigint
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
  v_late uuid[];
  v_unknown uuid[];
begin
  available := p_available;
  for v_row in
    select distinct on (s.id) s.id, s.cost, s.vendor
      from unnest(p_ids, p_costs, p_vendor_costs) as s(id, cost, vendor)
        join hold h on h.id = s.id and h.account_id = p_account
      where h.state = 4 order by s.id
  loop
    select l.available, coalesce(ledger_settle_odd.platform_loss, 0) + l.platform_loss
      into available, platform_loss
      from ledger_settle_late(p_account, v_row.id, v_row.cost, v_row.vendor, available, p_held) l;
    v_late := v_late || v_row.id;
  end loop;

  if platform_loss <= 0 then platform_loss := null; end if;

  with tombs as (
    insert into released_hold (id, account_id, seq, held)
      select distinct s.id, p_account, p_seq, 0 from unnest(p_ids) as s(id)
        where not exists (select from open_hold h where h.id = s.id)
          and not exists (select from ended_hold e where e.account_id = p_account and e.id = s.id)
      returning id
  ) select array_agg(id) into v_unknown from tombs;
  newest := case when v_unknown is null then p_newest else ledger_newest(p_newest, v_unknown) end;

  if p_calls is not null then
    delete from call c using json_populate_recordset(null::call, p_calls) r
      where c.id = r.id and r.id = any(v_late);
    perform call_write((select json_agg(r) from json_populate_recordset(null::call, p_calls) r
      where r.id = any(p_done) or r.id = any(v_late) or r.id = any(v_unknown)));
  end if;
  update call set cost = 0, held = 0, vendor_cost = null
    where id = any(v_unknown) and account_id = p_account;

  select string_agg(case
        when s.id = any(p_done) or s.id = any(v_late) then 's' when s.id = any(v_unknown) then 'u'
        when e.id is not null then 'a' else 'u' end, ',' order by s.n)
    into verdicts
    from unnest(p_ids) with ordinality as s(id, n)
      left join ended_hold e on e.account_id = p_account and e.id = s.id;
end $$;
