-- The call log, its hourly sums, and its watchers.

-- Columns that many calls have in common. ledger_apply gets them once for each kind of call in a
-- batch, not once for each call.
--
-- key_id is text: not every caller has a key. dropped: parts that the vendor's or the caller's
-- style could not express. charged: whether the usage was charged; otherwise the call was free.
-- discount_bp: in hundredths of a percent. second_micros: microseconds of video or audio. images,
-- second_micros: null if there are none. attempts: the failed attempts, as a list of vendor, model,
-- credential, error_code, failure and duration_ms. The answered attempt follows without an error,
-- if there was a choice. Null if the list is empty. units: quantities of rare units, by their names
-- in uas.yaml; null if there are none.
create type call_kind as (
  key_id text,
  model text,
  vendor text,
  path text,
  stream boolean,
  status integer,
  error_code text,
  ending smallint,
  usage_source smallint,
  price_version text,
  dropped text,
  discount_bp smallint,
  charged boolean,
  images integer,
  second_micros bigint,
  attempts jsonb,
  units jsonb
);

-- Columns: first those that differ from call to call, then those of call_kind in their order,
-- because ledger_apply writes the common columns as `(kind).*`.
create table call (
  id uuid not null,
  account_id uuid not null,
  request_id text not null,
  upstream_request_id text not null,
  input_tokens integer not null,
  cached_input_tokens integer not null,
  cache_write_tokens integer not null,
  output_tokens integer not null,
  reasoning_tokens integer not null,
  cost bigint not null,
  held bigint not null,
  start_time timestamptz not null,
  duration_ms integer not null,
  first_byte_ms integer not null,
  vendor_cost bigint null,
  key_id text not null,
  model text not null,
  vendor text not null,
  path text not null,
  stream boolean not null,
  status integer not null,
  error_code text not null,
  ending smallint not null,
  usage_source smallint not null,
  price_version text not null,
  dropped text null,
  discount_bp smallint null,
  charged boolean null,
  images integer null,
  second_micros bigint null,
  attempts jsonb null,
  units jsonb null,
  constraint call_pkey primary key (id)
) partition by range (id);
create table call_default partition of call default;
-- Lists use this index, and it includes the columns of filters: five million calls are searched
-- without reading their rows. Separate indexes for model and key each cost 11 us per settlement of
-- a full batch (of 52); this one adds no measurable cost.
create index call_account_id_id_index on call (account_id, id)
  include (model, key_id, status, error_code, ending, cost);
-- Written for failed calls only.
create index call_failed_index on call (account_id, id)
  include (model, key_id, status, error_code, ending, cost) where (ending not in (1, 5, 10));
-- Written for calls that had a choice of vendors only: possible costs of failed attempts are
-- summed.
create index call_attempts_index on call (id) where (attempts is not null);
-- A generated request id begins like the id of its call: their first 40 bits are the same quarter
-- of a second. Nearly all calls have such an id. They are found by that time, without an entry in
-- this index, which would take 5 % of a call's cost in the database.
create index call_request_id_index on call (request_id, account_id, id)
  where (left(request_id, 11) <> left(id::text, 11));

-- Hourly usage of each account: sums of the call log, written with it. hour: in UTC, by the call's
-- id, so by its start, regardless of its duration. failed_calls: calls that neither completed nor
-- ended because the client disconnected or cancelled. The busy rows are few and change with every
-- batch: fillfactor and vacuum as for the balance. No column of an index changes, so new versions
-- stay on the page (HOT).
create table usage_hour (
  account_id uuid not null,
  hour timestamptz not null,
  key_id text not null,
  model text not null,
  vendor text not null,
  calls bigint not null default 0,
  failed_calls bigint not null default 0,
  input_tokens bigint not null default 0,
  cached_input_tokens bigint not null default 0,
  cache_write_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  reasoning_tokens bigint not null default 0,
  images bigint not null default 0,
  second_micros bigint not null default 0,
  cost bigint not null default 0,
  vendor_cost bigint not null default 0,
  constraint usage_hour_pkey primary key (account_id, hour, key_id, model, vendor)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index usage_hour_hour_index on usage_hour (hour);

-- The processes that follow the call log of an account, or of all accounts with the nil id. A
-- process renews its row while it has a reader.
create table call_watch (
  account_id uuid not null,
  watcher uuid not null,
  expire_time timestamptz not null,
  constraint call_watch_pkey primary key (account_id, watcher)
);
