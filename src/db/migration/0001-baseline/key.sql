-- API keys, their last use, and their sealed copies. Rooms share no foreign keys; accounts are
-- never deleted.

-- state: uas.key.v1.KeyState. digest: SHA-256 of the key, which itself is not stored. models: null
-- means every model; an empty list could be read as "none" or as "all", so it is not allowed.
-- spend_limit: in nano-USD. rpm, tpm, concurrency: limits of this key; if all are null, the limits
-- of uas.yaml apply.
create table api_key (
  id uuid not null,
  account_id uuid not null,
  name text not null,
  digest bytea not null,
  masked text not null,
  models text[] null,
  state smallint not null default 1,
  create_time timestamptz not null default now(),
  change_time timestamptz not null default now(),
  delete_time timestamptz null,
  expire_time timestamptz null,
  spend_limit bigint null,
  rpm int null,
  tpm int null,
  concurrency int null,
  constraint api_key_pkey primary key (id),
  constraint api_key_digest_unique unique (digest),
  constraint api_key_models_check check (cardinality(models) > 0),
  constraint api_key_state_check check (state >= 1 and state <= 3),
  constraint api_key_spend_limit_check check (spend_limit > 0),
  constraint api_key_limits_check check (rpm > 0 and tpm > 0 and concurrency > 0)
);
create index api_key_account_id_id_index on api_key (account_id, id);
create index api_key_change_time_index on api_key (change_time);

-- Separate from api_key, because every change of that table invalidates the processes' caches of
-- the key. Written often: fillfactor.
create table key_use (
  key_id uuid not null,
  use_time timestamptz not null,
  constraint key_use_pkey primary key (key_id)
) with (fillfactor = 70);

-- wrapped: the account's data key, sealed with the master key. A new master key changes these 60
-- bytes only.
create table data_key (
  account_id uuid not null,
  wrapped bytea not null,
  constraint data_key_pkey primary key (account_id)
);

-- sealed: the key, sealed with the account's data key, so that its owner can see it again. Separate
-- from api_key, because every change of that table is sent to all processes.
create table key_copy (
  key_id uuid not null,
  account_id uuid not null,
  sealed bytea not null,
  constraint key_copy_pkey primary key (key_id)
);
