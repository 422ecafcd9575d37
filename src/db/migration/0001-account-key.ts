/** The tables of accounts and keys, and the notice that tells every node of a changed key. */
import { Migration } from "@mikro-orm/migrations";

const account = `
create table "account" (
  "id" uuid not null,
  "name" text not null,
  "create_time" timestamptz not null default now(),
  constraint "account_pkey" primary key ("id")
)`;

/**
 * state: uas.key.v1.KeyState. digest: SHA-256 of the key, which itself is nowhere. models: null means every
 * model; an empty list would be read as "none" by one and as "all" by another, so there is none. No foreign
 * key to the account: rooms share no constraints, and accounts are never deleted.
 */
const apiKey = `
create table "api_key" (
  "id" uuid not null,
  "account_id" uuid not null,
  "name" text not null,
  "digest" bytea not null,
  "masked" text not null,
  "models" text[] null,
  "state" smallint not null default 1,
  "create_time" timestamptz not null default now(),
  "change_time" timestamptz not null default now(),
  "delete_time" timestamptz null,
  constraint "api_key_pkey" primary key ("id"),
  constraint "api_key_digest_unique" unique ("digest"),
  constraint "api_key_models_check" check (cardinality(models) > 0),
  constraint "api_key_state_check" check (state >= 1 and state <= 3)
);
create index "api_key_account_id_id_index" on "api_key" ("account_id", "id");
create index "api_key_change_time_index" on "api_key" ("change_time")`;

/**
 * Triggers, so that a change made by hand counts like one of the service. clock_timestamp() is the time of
 * the change; now() would be the beginning of its transaction, which can be long ago.
 */
const stamp = `
create function "api_key_stamp"() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.state = 3 and new.state <> 3 then
    raise exception 'key % is deleted: that is final', old.id using errcode = 'check_violation';
  end if;
  new.change_time := clock_timestamp();
  if new.state = 3 then
    new.delete_time := coalesce(new.delete_time, clock_timestamp());
  end if;
  return new;
end $$;
create trigger "api_key_stamp" before insert or update on "api_key"
  for each row execute function "api_key_stamp"()`;

/** The payload is the key's id; empty: any key may have changed. */
const notice = `
create function "api_key_notice"() returns trigger language plpgsql as $$
begin
  if tg_op = 'TRUNCATE' then
    perform pg_notify('key_changed', '');
  else
    perform pg_notify('key_changed', coalesce(old.id, new.id)::text);
  end if;
  return null;
end $$;
create trigger "api_key_notice" after insert or update or delete on "api_key"
  for each row execute function "api_key_notice"();
create trigger "api_key_truncate_notice" after truncate on "api_key"
  for each statement execute function "api_key_notice"()`;

/** Creates what the rooms account and key keep. */
export class AccountKey0001 extends Migration {
  override up(): void {
    for (const statement of [account, apiKey, stamp, notice]) this.addSql(statement);
  }
}
