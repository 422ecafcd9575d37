/** What an account and a key can be limited by, and when a key was last used. */
import { Migration } from "@mikro-orm/migrations";

/**
 * state: uas.account.v1.AccountState. change_time: as in api_key. The defaults are constants (now() is
 * evaluated once), so no row is rewritten. discount_bp: 100 is 1 %.
 */
const account = `
alter table "account"
  add column "state" smallint not null default 1,
  add column "suspend_reason" text null,
  add column "suspend_time" timestamptz null,
  add column "discount_bp" int not null default 0,
  add column "low_balance_threshold" bigint null,
  add column "change_time" timestamptz not null default now(),
  add constraint "account_state_check" check (state >= 1 and state <= 2),
  add constraint "account_discount_bp_check" check (discount_bp >= 0 and discount_bp <= 10000),
  add constraint "account_low_balance_threshold_check" check (low_balance_threshold > 0);
create index "account_change_time_index" on "account" ("change_time")`;

/**
 * An account's state and discount are part of what every node remembers of its keys: a change is told like
 * that of a key, with the account's id. The new account has no key that anybody could remember.
 */
const accountNotice = `
create function "account_stamp"() returns trigger language plpgsql as $$
begin
  new.change_time := clock_timestamp();
  return new;
end $$;
create trigger "account_stamp" before update on "account"
  for each row execute function "account_stamp"();
create trigger "account_notice" after update or delete on "account"
  for each row execute function "api_key_notice"();
create trigger "account_truncate_notice" after truncate on "account"
  for each statement execute function "api_key_notice"()`;

/** What ledger_apply reads stands in the hot row; the account's own is the one that is shown and changed. */
const lowBalance = `
create function "account_low_balance"() returns trigger language plpgsql as $$
begin
  insert into balance as b (account_id, low_below) values (new.id, new.low_balance_threshold)
    on conflict (account_id) do update set low_below = excluded.low_below;
  return null;
end $$;
create trigger "account_low_balance" after update of "low_balance_threshold" on "account"
  for each row when (old.low_balance_threshold is distinct from new.low_balance_threshold)
  execute function "account_low_balance"()`;

const apiKey = `
alter table "api_key"
  add column "expire_time" timestamptz null,
  add column "spend_limit" bigint null,
  add constraint "api_key_spend_limit_check" check (spend_limit > 0)`;

/** Apart from api_key, whose every change empties the nodes' memory of the key. Written often: fillfactor. */
const keyUse = `
create table "key_use" (
  "key_id" uuid not null,
  "use_time" timestamptz not null,
  constraint "key_use_pkey" primary key ("key_id")
) with (fillfactor = 70)`;

/** Adds it. */
export class AccountKey0006 extends Migration {
  override up(): void {
    for (const statement of [account, accountNotice, lowBalance, apiKey, keyUse])
      this.addSql(statement);
  }
}
