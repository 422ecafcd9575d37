/** The tables of billing. Their SQL functions are in 0002-billing-functions.ts. */
import { Migration } from "@mikro-orm/migrations";
import { billingFunctions } from "./0002-billing-functions.ts";

/**
 * The hot row of every account. It changes with every batch: a low fillfactor keeps the new versions on
 * the same page (HOT), and vacuum comes by count, since a share of a small table is never reached.
 * No foreign key to the account: rooms share no constraints, and each would cost a lock per batch.
 */
const balance = `
create table "balance" (
  "account_id" uuid not null,
  "available" bigint not null default 0,
  "held" bigint not null default 0,
  constraint "balance_pkey" primary key ("account_id"),
  constraint "balance_available_check" check (available >= 0),
  constraint "balance_held_check" check (held >= 0)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)`;

/**
 * state: 1 open, 2 settled, 3 released, 4 expired (swept and not settled since). swept stays true when a
 * late settlement follows: its money is no longer held, so there is nothing to give back.
 */
const hold = `
create table "hold" (
  "id" uuid not null,
  "account_id" uuid not null,
  "amount" bigint not null,
  "settled" bigint null,
  "expires_at" timestamptz not null,
  "state" smallint not null default 1,
  "swept" boolean not null default false,
  constraint "hold_pkey" primary key ("id"),
  constraint "hold_amount_check" check (amount >= 0),
  constraint "hold_settled_check" check (settled >= 0),
  constraint "hold_state_check" check (state >= 1 and state <= 4)
) with (fillfactor = 80);
create index "hold_open_index" on "hold" ("expires_at") where (state = 1)`;

/**
 * account: 1 customer, 2 revenue, 3 cash_in, 4 promo, 5 refund, 6 platform_loss, 7 upstream_cost.
 * kind: uas.billing.v1.LedgerKind. The primary key makes a double booking impossible.
 */
const ledgerEntry = `
create table "ledger_entry" (
  "txn_id" uuid not null,
  "account_id" uuid not null,
  "amount" bigint not null,
  "create_time" timestamptz not null default now(),
  "account" smallint not null,
  "kind" smallint not null,
  "reference" text null,
  constraint "ledger_entry_pkey" primary key ("txn_id", "account"),
  constraint "ledger_entry_account_check" check (account >= 1 and account <= 7),
  constraint "ledger_entry_amount_check" check (amount <> 0)
) partition by range ("txn_id");
create table "ledger_entry_default" partition of "ledger_entry" default;
create index "ledger_entry_customer_index" on "ledger_entry" ("account_id", "txn_id") where (account = 1)`;

/** Columns: the members of CallRow. key_id is text: not every caller has a key. */
const call = `
create table "call" (
  "id" uuid not null,
  "account_id" uuid not null,
  "request_id" text not null,
  "key_id" text not null,
  "model" text not null,
  "vendor" text not null,
  "path" text not null,
  "stream" boolean not null,
  "status" integer not null,
  "error_code" text not null,
  "ending" smallint not null,
  "usage_source" smallint not null,
  "input_tokens" integer not null,
  "cached_input_tokens" integer not null,
  "cache_write_tokens" integer not null,
  "output_tokens" integer not null,
  "reasoning_tokens" integer not null,
  "cost" bigint not null,
  "held" bigint not null,
  "price_version" text not null,
  "start_time" timestamptz not null,
  "duration_ms" integer not null,
  "first_byte_ms" integer not null,
  "upstream_request_id" text not null,
  constraint "call_pkey" primary key ("id")
) partition by range ("id");
create table "call_default" partition of "call" default;
create index "call_account_id_id_index" on "call" ("account_id", "id");
create index "call_request_id_index" on "call" ("request_id", "account_id", "id")`;

/** Makes top-ups and refunds idempotent: one booking per account and reference. */
const booking = `
create table "booking" (
  "account_id" uuid not null,
  "reference" text not null,
  "kind" smallint not null,
  "txn_id" uuid not null,
  "amount" bigint not null,
  "call_id" uuid null,
  "create_time" timestamptz not null default now(),
  constraint "booking_pkey" primary key ("account_id", "reference"),
  constraint "booking_amount_check" check (amount > 0)
);
create index "booking_call_id_index" on "booking" ("call_id") where (call_id is not null)`;

const priceVersion = `
create table "price_version" (
  "version" text not null,
  "price" jsonb not null,
  "create_time" timestamptz not null default now(),
  constraint "price_version_pkey" primary key ("version")
)`;

/** Creates what billing keeps. */
export class Billing0002 extends Migration {
  override up(): void {
    for (const table of [balance, hold, ledgerEntry, call, booking, priceVersion]) {
      this.addSql(table);
    }
    for (const statement of billingFunctions) this.addSql(statement);
  }
}
