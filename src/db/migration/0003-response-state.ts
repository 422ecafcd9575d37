/** The tables of inference: replies kept for their account, and reasoning kept for chat clients. */
import { Migration } from "@mikro-orm/migrations";

/**
 * vendor: who keeps the response; empty: it is kept here, as the JSON that was sent (bytes, not jsonb: it is
 * given back as it was). The key has the account first, for two vendors can give the same id.
 */
const storedResponse = `
create table "stored_response" (
  "account_id" uuid not null,
  "id" text not null,
  "model" text not null,
  "vendor" text not null,
  "previous_id" text null,
  "response" bytea null,
  "input" bytea null,
  "item_ids" text[] not null,
  "bytes" int not null,
  "create_time" timestamptz not null default now(),
  "expires_at" timestamptz not null,
  constraint "stored_response_pkey" primary key ("account_id", "id"),
  constraint "stored_response_bytes_check" check (bytes >= 0),
  constraint "stored_response_kept_check"
    check ((vendor = '') = (response is not null and input is not null))
);
create index "stored_response_expires_at_index" on "stored_response" ("expires_at");
create index "stored_response_account_id_expires_at_index"
  on "stored_response" ("account_id", "expires_at");
create index "stored_response_item_ids_index" on "stored_response" using gin ("item_ids")`;

/**
 * digest: SHA-256 of a tool call's id. sealed: in the row of the turn's first call only; first_digest leads
 * there from the others, so that a turn with many calls is kept once.
 */
const keptReasoning = `
create table "kept_reasoning" (
  "account_id" uuid not null,
  "digest" bytea not null,
  "first_digest" bytea not null,
  "sealed" bytea null,
  "expires_at" timestamptz not null,
  constraint "kept_reasoning_pkey" primary key ("account_id", "digest"),
  constraint "kept_reasoning_sealed_check"
    check ((digest = first_digest) = (sealed is not null))
);
create index "kept_reasoning_expires_at_index" on "kept_reasoning" ("expires_at")`;

/** Creates what inference keeps. */
export class ResponseState0003 extends Migration {
  override up(): void {
    for (const statement of [storedResponse, keptReasoning]) this.addSql(statement);
  }
}
