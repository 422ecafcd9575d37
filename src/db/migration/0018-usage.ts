/** What each account used per hour: sums of the call log, written with it. */
import { Migration } from "@mikro-orm/migrations";

/**
 * `hour` is in UTC, and that of the call's id: of its start, however long it ran. failed_calls: those that ended
 * neither completed, nor because the client left or cancelled. The busy rows are few and change with every batch: fillfactor and
 * vacuum as for the balance. No column of an index changes, so new versions stay on the page (HOT).
 */
const usageHour = `
create table "usage_hour" (
  "account_id" uuid not null,
  "hour" timestamptz not null,
  "key_id" text not null,
  "model" text not null,
  "calls" bigint not null default 0,
  "failed_calls" bigint not null default 0,
  "input_tokens" bigint not null default 0,
  "cached_input_tokens" bigint not null default 0,
  "cache_write_tokens" bigint not null default 0,
  "output_tokens" bigint not null default 0,
  "reasoning_tokens" bigint not null default 0,
  "images" bigint not null default 0,
  "second_micros" bigint not null default 0,
  "cost" bigint not null default 0,
  "vendor_cost" bigint not null default 0,
  constraint "usage_hour_pkey" primary key ("account_id", "hour", "key_id", "model")
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index "usage_hour_hour_index" on "usage_hour" ("hour")`;

/** The hour in UTC of a UUIDv7. */
const uuidHour = `
create function uuid_hour(id uuid) returns timestamptz
language sql immutable strict parallel safe as $$
  select to_timestamp(('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint / 3600000 * 3600)
$$`;

/** The sums of a call: how they are named, and how they are told from its row. */
const sums: Readonly<Record<string, string>> = {
  calls: "1",
  failed_calls: "(ending not in (1, 5, 10))::int",
  input_tokens: "input_tokens",
  cached_input_tokens: "cached_input_tokens",
  cache_write_tokens: "cache_write_tokens",
  output_tokens: "output_tokens",
  reasoning_tokens: "reasoning_tokens",
  images: "coalesce(images, 0)",
  second_micros: "coalesce(second_micros, 0)",
  cost: "cost",
  vendor_cost: "coalesce(vendor_cost, 0)",
};
const names = Object.keys(sums).join(", ");

/**
 * Adds the rows of some tables of calls to the sums; with a sign of -1 it takes them off. Rows are locked in the
 * order of their keys: records of refused calls come without the lock of their account.
 */
function count(...tables: readonly (readonly [table: string, sign: 1 | -1])[]): string {
  const terms = Object.entries(sums).map(([name, term]) => `sum(sign * ${term}) as ${name}`);
  const rows = tables.map(([table, sign]) => `select ${sign} as sign, c.* from ${table} c`);
  const added = Object.keys(sums).map((name) => `${name} = u.${name} + excluded.${name}`);
  return `
    insert into usage_hour as u (account_id, hour, key_id, model, ${names})
      select account_id, uuid_hour(id), key_id, model, ${terms.join(", ")}
        from (${rows.join(" union all ")}) c
        group by 1, 2, 3, 4 order by 1, 2, 3, 4
      on conflict (account_id, hour, key_id, model) do update set ${added.join(", ")}`;
}

/**
 * Triggers, once per statement: whoever writes the log writes the sums, in the same transaction; the
 * settlements of a batch, a sweep, a correction, the records of refused calls. A statement of ledger_apply
 * instead would save the copy of the rows (1 µs each) and have to stand in four functions.
 */
const triggers = `
create function call_count_usage() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then ${count(["new_calls", 1])};
  elsif tg_op = 'DELETE' then ${count(["old_calls", -1])};
  else ${count(["old_calls", -1], ["new_calls", 1])};
  end if;
  return null;
end $$;
create trigger call_insert_usage after insert on call
  referencing new table as new_calls for each statement execute function call_count_usage();
create trigger call_delete_usage after delete on call
  referencing old table as old_calls for each statement execute function call_count_usage();
create trigger call_update_usage after update on call
  referencing old table as old_calls new table as new_calls
  for each statement execute function call_count_usage()`;

/** Adds it, and counts what is in the log. Making the triggers keeps writers out until all is counted. */
export class Usage0018 extends Migration {
  override up(): void {
    for (const statement of [usageHour, uuidHour, triggers, count(["call", 1])]) {
      this.addSql(statement);
    }
  }
}
