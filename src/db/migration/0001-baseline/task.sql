-- Asynchronous tasks, their history, and their result files.

-- state: see src/task/state.ts. type: uas.inference.v1.ModelType. hold, cost: nano-USD.
-- params, result, usage: json, because jsonb cannot store U+0000 or half a surrogate pair.
-- fingerprint: SHA-256 of the request. next_time: when a worker processes the task next.
-- fence: grows with each claim. A process that was taken for dead can no longer write.
-- attempt_token: shows the vendor that a repeated submission is the same one.
-- notification_count: number of vendor notifications received.
-- reported_vendor_task_id: the vendor's task ID according to a notification.
-- is_reported_id_confirmed: the vendor named the ID in a reply to a request of ours.
-- is_late_charge_pending: the task has ended, but the vendor may still run it and charge for it.
-- path: public path of the vendor's own form by which it was submitted; null for the gateway's own
-- form. call_path: path in its call record; null if it follows from the rest.
-- is_cancel_billed: a cancelled task costs what the vendor charged.
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
  notification_count int not null default 0,
  reported_vendor_task_id text null,
  is_reported_id_confirmed boolean not null default false,
  is_late_charge_pending boolean not null default false,
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
  -- R-TSK-6: of the tasks that are not completed, only a cancelled one can have a cost, and only if
  -- that was agreed.
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
create index task_late_charge_index on task (next_time) where (is_late_charge_pending);

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

-- The same bytes are kept once. storage: the store that has them, `local` or `s3`. loose: some
-- token stopped naming the blob, so that it is worth checking whether any other does.
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

-- token: the path segment of the public address. storage and sha256: its blob; null after expiry,
-- when the row only records that the file existed. ready: false while the bytes are being stored; a
-- file that does not become ready in time expires. No foreign key: every statement that adds a
-- token or removes a blob locks the blob's row first.
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
