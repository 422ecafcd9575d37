/** What makes the call log quick to look into, and tells who watches it. */

/**
 * The index that lists are read by brings what filters ask for: five million calls are looked through without
 * their rows. An index of its own for model and key each cost 11 µs per settlement of a full batch (of 52), this
 * nothing that could be measured. The other one is written for failed calls only.
 */
const asked = `include ("model", "key_id", "status", "error_code", "ending", "cost")`;
const indexes = [
  `drop index "call_account_id_id_index"`,
  `create index "call_account_id_id_index" on "call" ("account_id", "id") ${asked}`,
  `create index "call_failed_index" on "call" ("account_id", "id") ${asked}
    where (ending not in (1, 5, 10))`,
];

/** Who watches the log of an account, or with the nil id of all: a process renews its row while it has a reader. */
const callWatch = `
create table "call_watch" (
  "account_id" uuid not null,
  "watcher" uuid not null,
  "expire_time" timestamptz not null,
  constraint "call_watch_pkey" primary key ("account_id", "watcher")
)`;

/**
 * Tells what was written, where somebody watches: commits with notices wait for each other, so nothing else
 * does. A notice names at most 200 calls, for it may have 8,000 bytes; and says how many there were.
 */
const tell = `
create function call_tell() returns trigger language plpgsql as $$
begin
  if exists (select from call_watch w where w.expire_time > clock_timestamp()) then
    perform pg_notify('call_written', concat_ws(' ', c.account_id, count(*),
        array_to_string((array_agg(c.id order by c.id desc))[1:200], ' ')))
      from new_calls c
      where exists (select from call_watch w where w.expire_time > clock_timestamp()
        and w.account_id in (c.account_id, '00000000-0000-0000-0000-000000000000'))
      group by c.account_id;
  end if;
  return null;
end $$;
create trigger call_insert_tell after insert on call
  referencing new table as new_calls for each statement execute function call_tell()`;

/** In the order of their creation. */
export const callStatements: readonly string[] = [...indexes, callWatch, tell];
