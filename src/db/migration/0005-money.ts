/** Money across crashes, streams and keys. Its SQL functions are in the files 0005-money-*.ts beside this one. */
import { Migration } from "@mikro-orm/migrations";
import { moneyFunctions } from "./0005-money-functions.ts";

/**
 * A process from its start to its end. Its times are the database's. steady_time: since when it has been in
 * touch without a gap; only who has been so for long enough may call others silent, or an outage of the
 * database would kill them all. ended: its holds are being settled for it, or it has closed.
 */
const node = `
create table "node" (
  "id" uuid not null,
  "name" text not null,
  "start_time" timestamptz not null default now(),
  "seen_time" timestamptz not null default now(),
  "steady_time" timestamptz not null default now(),
  "ended" timestamptz null,
  constraint "node_pkey" primary key ("id")
) with (fillfactor = 50)`;

/**
 * Null: made by an older version, or inside another transaction. key_limit: the key's lifetime limit as the
 * hold knew it, for its growth. steps: how many rows of hold_step it has. checkpointed: whether a row of
 * hold_checkpoint may be there, so that a settlement looks for one only then.
 *
 * Holds are never deleted, and stay one table. A closed hold is what makes a settlement that arrives days
 * late harmless, and half of a receipt; it has a sixth of the bytes of the record and the entries that it
 * stands for, which are kept too. Monthly partitions would be opened and locked by every batch, forever
 * more of them; what has to stay small is what changes (checkpoints, open holds by their partial index), and
 * vacuum comes by count so that the share of a large table does not keep it away.
 */
const hold = `
alter table "hold"
  add column "node_id" uuid null,
  add column "key_id" uuid null,
  add column "key_limit" bigint null,
  add column "steps" integer not null default 0,
  add column "checkpointed" boolean not null default false;
alter table "hold" set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000)`;

/** What an open hold is settled with if its process dies. Rewritten every few seconds, gone with the hold. */
const holdCheckpoint = `
create table "hold_checkpoint" (
  "hold_id" uuid not null,
  "cost" bigint not null,
  "record" json null,
  constraint "hold_checkpoint_pkey" primary key ("hold_id"),
  constraint "hold_checkpoint_cost_check" check (cost >= 0)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)`;

/** What a hold grew by, step by step: the first amount is what it has less all of these. Append-only. */
const holdStep = `
create table "hold_step" (
  "hold_id" uuid not null,
  "amount" bigint not null,
  "create_time" timestamptz not null default clock_timestamp(),
  "n" integer not null,
  constraint "hold_step_pkey" primary key ("hold_id", "n"),
  constraint "hold_step_amount_check" check (amount > 0)
) partition by range ("hold_id");
create table "hold_step_default" partition of "hold_step" default`;

/**
 * What each key has spent in its life and holds now. carried: the part of spent that was there before holds
 * knew their key. Written by every batch: fillfactor and vacuum as for the balance.
 */
const keySpend = `
create table "key_spend" (
  "key_id" uuid not null,
  "account_id" uuid not null,
  "spent" bigint not null default 0,
  "held" bigint not null default 0,
  "carried" bigint not null default 0,
  constraint "key_spend_pkey" primary key ("key_id"),
  constraint "key_spend_held_check" check (held >= 0),
  constraint "key_spend_spent_check" check (spent >= 0)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
insert into "key_spend" (key_id, account_id, spent, carried)
  select key_id::uuid, (array_agg(account_id))[1], sum(cost), sum(cost) from "call"
    where key_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
    group by key_id having sum(cost) > 0`;

/**
 * Account 8 is vendor_payable, the other side of 7. balance_after: what the customer has (available and
 * held) after this entry; null for other accounts' entries and older ones. call_id: the call that a late
 * settlement corrects; null else. low_below: whoever falls below it is reported.
 */
const others = `
alter table "ledger_entry"
  add column "balance_after" bigint null,
  add column "call_id" uuid null,
  drop constraint "ledger_entry_account_check",
  add constraint "ledger_entry_account_check" check (account >= 1 and account <= 8);
create index "ledger_entry_call_id_index" on "ledger_entry" ("call_id") where (call_id is not null);
alter table "balance" add column "low_below" bigint null;
alter table "call" add column "vendor_cost" bigint null;
alter table "booking" add column "reason" text null,
  drop constraint "booking_amount_check",
  add constraint "booking_amount_check" check (amount <> 0)`;

/** Adds it. */
export class Money0005 extends Migration {
  override up(): void {
    for (const statement of [node, hold, holdCheckpoint, holdStep, keySpend, others]) {
      this.addSql(statement);
    }
    for (const statement of moneyFunctions) this.addSql(statement);
  }
}
