-- Asynchronous tasks, their history, and their result files.

-- state: see src/task/state.ts. type: uas.inference.v1.ModelType. params, result, usage: json and not jsonb, which
-- cannot hold U+0000 or half a surrogate pair. fingerprint: SHA-256 of what was asked for. fence: grows with every
-- claim, so that a process that was taken for dead can write no more. next_time: when a worker should look at it.
-- attempt_token: tells the vendor that a repeated submission is the same one. hold, cost: nano-USD. hints: how often
-- somebody said that there is news at the vendor. hint_task_id: the vendor's id of the task, as they said.
-- is_hint_sure: the vendor has said so itself, in an answer to us. is_trailing: the task has ended, but its vendor may
-- still be at work and charge for it. path: the public path of a vendor's own interface at which it was submitted;
-- null: the gateway's own. call_path: the path in its call record; null: by the other facts. is_cancel_billed: whether it may cost anything when it is cancelled.
create table task (
  id uuid not null,
  account_id uuid not null,
  key_id uuid not null,
  model text not null,
  type smallint not null,
  params json not null,
  fingerprint bytea not null,
  callback_id text null,
  callback_url text null,
  request_id text not null,
  state text not null default 'queued',
  progress smallint not null default 0,
  cancel_requested boolean not null default false,
  version int not null default 1,
  fence int not null default 0,
  lease_until timestamptz null,
  next_time timestamptz not null default now(),
  deadline timestamptz not null,
  attempt_token uuid null,
  attempt_time timestamptz null,
  poll_count int not null default 0,
  failure_count int not null default 0,
  vendor text not null default '',
  vendor_model text not null default '',
  credential text not null default '',
  vendor_task_id text null,
  hold bigint not null,
  price_version text not null,
  discount_bp int not null,
  result json null,
  error_code text null,
  error text null,
  usage json null,
  cost bigint null,
  create_time timestamptz not null default now(),
  start_time timestamptz null,
  finish_time timestamptz null,
  expire_time timestamptz null,
  hints int not null default 0,
  hint_task_id text null,
  is_hint_sure boolean not null default false,
  is_trailing boolean not null default false,
  path text null,
  is_cancel_billed boolean not null default false,
  call_path text null,
  constraint task_pkey primary key (id),
  constraint task_account_id_callback_id_unique unique (account_id, callback_id),
  constraint task_state_check check (state in ('queued', 'submitting', 'submit_unknown', 'running',
    'finalizing', 'completed', 'failed', 'cancelled')),
  constraint task_progress_check
    check (progress >= 0 and progress <= 100 and (progress = 100) = (state = 'completed')),
  constraint task_ended_check check ((state in ('completed', 'failed', 'cancelled')) = (finish_time is not null)
    and (finish_time is null) = (cost is null)),
  constraint task_error_check check ((state = 'failed') = (error_code is not null)),
  constraint task_result_check check ((state = 'completed') = (result is not null)),
  -- R-TSK-6: of tasks that are not completed, only a cancelled one can cost, and only where that was agreed.
  constraint task_cost_check
    check (cost >= 0 and (cost = 0 or state = 'completed' or state = 'cancelled' and is_cancel_billed)),
  constraint task_hold_check check (hold >= 0)
) with (fillfactor = 70);
create index task_account_id_id_index on task (account_id, id);
create index task_request_id_index on task (request_id, id);
create index task_queued_index on task (account_id, id) where (state = 'queued');
create index task_next_time_index on task (next_time)
  where (state in ('submitting', 'submit_unknown', 'running', 'finalizing'));
create index task_attempt_token_index on task (attempt_token) where (attempt_token is not null);
create index task_trailing_index on task (next_time) where (is_trailing);

-- kind: `state` for changes of state, which a trigger writes; else a word of the task room's.
create table task_event (
  id bigserial not null,
  task_id uuid not null,
  time timestamptz not null default now(),
  kind text not null,
  state text not null,
  detail json null,
  constraint task_event_pkey primary key (id)
);
create index task_event_task_id_id_index on task_event (task_id, id);

-- The same bytes are kept once. storage: the store that has them, `local` or `s3`. loose: some token stopped naming the
-- blob, so that it is worth checking whether any other does.
create table result_blob (
  storage text not null,
  sha256 bytea not null,
  bytes bigint not null,
  loose boolean not null default false,
  create_time timestamptz not null default now(),
  constraint result_blob_pkey primary key (storage, sha256),
  constraint result_blob_bytes_check check (bytes >= 0),
  constraint result_blob_sha256_check check (octet_length(sha256) = 32)
);
create index result_blob_loose_index on result_blob (storage, sha256) where loose;

-- token: what the public address consists of. storage and sha256: its blob; null once it has expired: the row then
-- only remembers that it existed. ready: false while the bytes are being stored; what is not ready soon expires. No
-- foreign key: whoever adds a token or removes a blob locks the blob's row first.
create table result_file (
  token text not null,
  storage text null,
  sha256 bytea null,
  content_type text not null,
  extension text not null,
  account_id uuid not null,
  task_id uuid not null,
  ready boolean not null default false,
  create_time timestamptz not null default now(),
  expire_time timestamptz not null,
  constraint result_file_pkey primary key (token),
  constraint result_file_blob_check check ((storage is null) = (sha256 is null))
);
create index result_file_blob_index on result_file (storage, sha256) where sha256 is not null;
create index result_file_expire_time_index on result_file (expire_time);
