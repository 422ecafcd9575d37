-- Vendors' native APIs: the owners of objects at a vendor, and jobs that were submitted in a
-- vendor's form.

-- name: the vendor's name of it, with its collection, such as `files/abc`. Its account never
-- changes. credential: the name of the vendor's credential that created it; empty for the only or
-- first one. For a prompt cache: its model here, its stored tokens, its expiry (expire_time), the
-- time up to which its storage was charged (paid_time), and the vendor's last description (body).
-- All are null for other objects.
create table native_object (
  vendor text not null,
  name text not null,
  account_id uuid not null,
  credential text not null default '',
  create_time timestamptz not null default now(),
  model text null,
  tokens int null,
  expire_time timestamptz null,
  paid_time timestamptz null,
  body bytea null,
  constraint native_object_pkey primary key (vendor, name)
);
create index native_object_create_time_index on native_object (create_time);
create index native_object_expire_time_index on native_object (expire_time) where expire_time is not null;
create index native_object_cache_index on native_object (account_id, vendor, name) where expire_time is not null;

-- task_id: its task. word: its collection at the vendor. vendor_id: the vendor's id; null until the
-- vendor has answered. body, status, refresh_time: the vendor's last answer, and its time. body is
-- null if the answer is too long to store.
create table native_job (
  task_id uuid not null,
  account_id uuid not null,
  vendor text not null,
  word text not null,
  vendor_id text null,
  callback_id text null,
  wants_progress boolean not null default true,
  status text not null default '',
  body bytea null,
  refresh_time timestamptz null,
  constraint native_job_pkey primary key (task_id),
  constraint native_job_vendor_vendor_id_unique unique (vendor, vendor_id)
);
create index native_job_account_id_vendor_word_task_id_index on native_job (account_id, vendor, word, task_id);

-- Uploads of an account to vendors, by day.
create table native_upload (
  account_id uuid not null,
  day date not null,
  objects integer not null,
  bytes bigint not null,
  constraint native_upload_pkey primary key (account_id, day)
);
create index native_upload_day_index on native_upload (day);
