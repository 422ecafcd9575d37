-- Does for ledger_apply what the trigger function call_notice does for other writers of call records.
--
-- p_kind: for each id which kind of record it has, 0: none (see ledger_apply).
--
-- Locks: none.
create or replace function call_notice_ids(p_account uuid, p_ids uuid[], p_kind integer[]) returns void
language plpgsql
as $$
begin
  if exists (select from call_watch w where w.expire_time > clock_timestamp()) then
    perform pg_notify('call_written', concat_ws(' ', p_account, count(*),
        array_to_string((array_agg(c.id order by c.id desc))[1:200], ' ')))
      from unnest(p_ids, p_kind) as c(id, kind)
      where c.kind is distinct from 0 and exists (select from call_watch w where w.expire_time > clock_timestamp()
        and w.account_id in (p_account, '00000000-0000-0000-0000-000000000000'))
      having count(*) > 0;
  end if;
end $$;
