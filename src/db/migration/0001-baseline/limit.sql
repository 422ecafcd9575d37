-- Counters for limits of requests, tokens and concurrency. The limits themselves are in uas.yaml,
-- in keys and in accounts.

-- subject: `k` and a key, `a` and an account, `m` and a model. slice: the current 5 seconds,
-- counted from 1970; requests and tokens: of that slice and of the twelve before it, newest first.
-- Written by every batch with limits: fillfactor and vacuum as for the balance.
create table limit_use (
  subject text not null,
  slice bigint not null,
  requests bigint[] not null,
  tokens bigint[] not null,
  constraint limit_use_pkey primary key (subject)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Number of calls of a subject that each process runs. Rows of a dead process (see node) do not
-- count.
create table limit_running (
  subject text not null,
  node_id uuid not null,
  running int not null,
  constraint limit_running_pkey primary key (subject, node_id)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
