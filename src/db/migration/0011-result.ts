/** Result files of tasks: what is kept, and the tokens that lead there. */
import { Migration } from "@mikro-orm/migrations";

/**
 * The same bytes are kept once. storage: which store has them, `local` or `s3`. loose: some token stopped
 * leading here, so that it is worth a look whether any other does.
 */
const resultBlob = `
create table "result_blob" (
  "storage" text not null,
  "sha256" bytea not null,
  "bytes" bigint not null,
  "loose" boolean not null default false,
  "create_time" timestamptz not null default now(),
  constraint "result_blob_pkey" primary key ("storage", "sha256"),
  constraint "result_blob_bytes_check" check (bytes >= 0),
  constraint "result_blob_sha256_check" check (octet_length(sha256) = 32)
);
create index "result_blob_loose_index" on "result_blob" ("storage", "sha256") where loose`;

/**
 * token: what the address consists of. storage and sha256: its blob; null once it has expired, and the row then
 * only remembers that it was there. ready: false while the bytes are on their way; what is not ready soon
 * expires. No foreign key: who adds a token and who removes a blob both lock the blob's row first.
 */
const resultFile = `
create table "result_file" (
  "token" text not null,
  "storage" text null,
  "sha256" bytea null,
  "content_type" text not null,
  "extension" text not null,
  "account_id" uuid not null,
  "task_id" uuid not null,
  "ready" boolean not null default false,
  "create_time" timestamptz not null default now(),
  "expire_time" timestamptz not null,
  constraint "result_file_pkey" primary key ("token"),
  constraint "result_file_blob_check" check ((storage is null) = (sha256 is null))
);
create index "result_file_blob_index" on "result_file" ("storage", "sha256") where sha256 is not null;
create index "result_file_expire_time_index" on "result_file" ("expire_time")`;

export class Result0011 extends Migration {
  override up(): void {
    this.addSql(resultBlob);
    this.addSql(resultFile);
  }
}
