-- A new UUIDv7 by the database's clock: the id of a transaction that no caller has named.
create or replace function ledger_uuid() returns uuid
language sql
as $$
  select encode(set_byte(b, 6, (get_byte(b, 6) & 15) | 112), 'hex')::uuid
    from (select overlay(uuid_send(gen_random_uuid()) placing substring(int8send(
      floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6) as b) as
        random
$$;
