-- Configurations that were put into force. Never changed; the newest one counts. document and hash:
-- null if it returned to the file of each gateway.
create table config_revision (
  number bigint not null,
  create_time timestamptz not null default clock_timestamp(),
  author text not null,
  note text not null,
  document text null,
  hash text null,
  constraint config_revision_pkey primary key (number)
);

-- Secrets of the configuration. sealed: the value, encrypted with the master key.
create table config_secret (
  name text not null,
  sealed bytea not null,
  author text not null,
  update_time timestamptz not null default clock_timestamp(),
  constraint config_secret_pkey primary key (name)
);

-- The configuration in force in each process. problem: why it could not load another one.
create table config_process (
  process_id uuid not null,
  source text not null,
  hash text not null,
  load_time timestamptz not null,
  needs_restart text[] not null,
  problem text null,
  constraint config_process_pkey primary key (process_id)
);
