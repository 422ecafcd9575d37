-- The hour, in UTC, at which a UUIDv7 was made.
create or replace function uuid_hour(id uuid) returns timestamptz
language sql immutable strict parallel safe
as $$
  select to_timestamp(('x' || translate(left(id::text, 13), '-',
    ''))::bit(48)::bigint / 3600000 * 3600)
$$;
