import type { Migration } from "../migrate.ts";

/** Calls with an `Idempotency-Key`: a repeated request gets the first reply. */
export const idempotentCalls0002: Migration = {
  name: "0002-idempotent-calls",
  compatibleFrom: "0001-baseline",
  statements: () => [
    `create table idempotent_call (
      account_id uuid not null,
      key text not null,
      fingerprint bytea not null,
      call_id uuid not null,
      request_id text not null,
      node_id uuid not null,
      is_ended boolean not null default false,
      sealed bytea null,
      bytes int not null default 0,
      expires_at timestamptz not null,
      primary key (account_id, key),
      constraint idempotent_call_bytes_check check (bytes >= 0)
    )`,
    `create index idempotent_call_expires_at_index on idempotent_call (expires_at)`,
    `create index idempotent_call_account_id_expires_at_index
      on idempotent_call (account_id, expires_at)`,
  ],
};
