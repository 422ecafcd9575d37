/** The sealed copies of keys, so that their owners can have them shown again. */
import { Migration } from "@mikro-orm/migrations";

/** wrapped: the account's data key, sealed with the master key: another master key means other 60 bytes here only. */
const dataKey = `
create table "data_key" (
  "account_id" uuid not null,
  "wrapped" bytea not null,
  constraint "data_key_pkey" primary key ("account_id")
)`;

/** sealed: the key, with the account's data key. Apart from api_key, whose every change all nodes are told of. */
const keyCopy = `
create table "key_copy" (
  "key_id" uuid not null,
  "account_id" uuid not null,
  "sealed" bytea not null,
  constraint "key_copy_pkey" primary key ("key_id")
)`;

/** A deleted key has none, whoever deletes it. */
const wipe = `
create function "key_copy_wipe"() returns trigger language plpgsql as $$
begin
  delete from key_copy where key_id = old.id;
  return null;
end $$;
create trigger "key_copy_wipe" after update of "state" on "api_key"
  for each row when (new.state = 3) execute function "key_copy_wipe"();
create trigger "key_copy_wipe_deleted" after delete on "api_key"
  for each row execute function "key_copy_wipe"()`;

/** Creates them. */
export class KeyCopy0017 extends Migration {
  override up(): void {
    for (const statement of [dataKey, keyCopy, wipe]) this.addSql(statement);
  }
}
