-- Notifies watchers of the call log of new records: their accounts and ids.
--
-- A console page that follows the log has a row in call_watch. Commits with notifications wait for
-- each other, so none is sent if there is no watcher. A notification holds at most 8,000 bytes: it
-- names the account, the number of records and the newest 200 ids.
--
-- Locks: none.
create or replace function call_notice(p_accounts uuid[], p_ids uuid[]) returns void
language plpgsql
as $$
begin
  if exists (select from call_watch w where w.expire_time > clock_timestamp()) then
    perform pg_notify('call_written', concat_ws(' ', c.account_id, count(*),
        array_to_string((array_agg(c.id order by c.id desc))[1:200], ' ')))
      from unnest(p_accounts, p_ids) as c(account_id, id)
      where c.id is not null and exists (select from call_watch w where w.expire_time > clock_timestamp()
        and w.account_id in (c.account_id, '00000000-0000-0000-0000-000000000000'))
      group by c.account_id;
  end if;
end $$;
