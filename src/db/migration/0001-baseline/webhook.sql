-- Webhooks: secrets, events, deliveries and their attempts, and the health of endpoints.

-- The account's signing secrets, sealed. previous: the one before, valid for a day after
-- rotate_time. is_promoted: the newer one has taken over the specification's header.
create table webhook_secret (
  account_id uuid not null,
  sealed bytea not null,
  previous bytea null,
  is_promoted boolean not null default true,
  rotate_time timestamptz not null default now(),
  constraint webhook_secret_pkey primary key (account_id),
  constraint webhook_secret_is_promoted_check check (is_promoted or previous is not null)
);

-- Events to report. No column ever changes. task_id: events of a task are sent in order; each test
-- has a separate task id. kind: 1 progress, 2 terminal, 3 test. status:
-- uas.webhook.v1.WebhookStatus. endpoint_id: derived from account and origin.
create table webhook_event (
  id uuid not null,
  account_id uuid not null,
  task_id uuid not null,
  endpoint_id uuid not null,
  create_time timestamptz not null default now(),
  sequence int not null,
  kind smallint not null,
  status smallint not null,
  progress smallint not null,
  callback_id text not null,
  url text not null,
  body bytea not null,
  constraint webhook_event_pkey primary key (id),
  constraint webhook_event_task_id_sequence_unique unique (task_id, sequence),
  constraint webhook_event_kind_check check (kind >= 1 and kind <= 3),
  constraint webhook_event_status_check check (status >= 1 and status <= 5),
  constraint webhook_event_progress_check check (progress >= 0 and progress <= 100)
);
create unique index webhook_event_terminal_index on webhook_event (task_id) where (kind = 2);
create index webhook_event_account_id_callback_id_index on webhook_event (account_id, callback_id, id);

-- The sending of an event, by the event's id. state: 1 pending, 2 sending, 3 delivered, 4 failed, 5
-- dropped. attempts: number of all attempts. series: attempts since it was started or restarted;
-- the schedule limits them. lease_until: the time when another process may take over a delivery in
-- progress. The two unique indexes keep the order within a task: at most one delivery waits and one
-- is being sent.
create table webhook_delivery (
  id uuid not null,
  account_id uuid not null,
  endpoint_id uuid not null,
  task_id uuid not null,
  due timestamptz not null default now(),
  claim_time timestamptz null,
  lease_until timestamptz null,
  end_time timestamptz null,
  attempts int not null default 0,
  series int not null default 0,
  kind smallint not null,
  state smallint not null default 1,
  is_urgent boolean not null default false,
  constraint webhook_delivery_pkey primary key (id),
  constraint webhook_delivery_kind_check check (kind >= 1 and kind <= 3),
  constraint webhook_delivery_state_check check (state >= 1 and state <= 5),
  constraint webhook_delivery_lease_until_check check ((state = 2) = (lease_until is not null))
) with (fillfactor = 80);
create unique index webhook_delivery_waiting_index on webhook_delivery (task_id) where (state = 1);
create unique index webhook_delivery_sending_index on webhook_delivery (task_id) where (state = 2);
create index webhook_delivery_due_index on webhook_delivery (endpoint_id, due) where (state = 1);
create index webhook_delivery_urgent_index on webhook_delivery (endpoint_id, due) where (state = 1 and is_urgent);
create index webhook_delivery_account_id_id_index on webhook_delivery (account_id, id);
create index webhook_delivery_endpoint_id_id_index on webhook_delivery (endpoint_id, id);
-- Failed and dropped deliveries are few, and are searched across all accounts. No other delivery
-- adds to this index.
create index webhook_delivery_over_index on webhook_delivery (state, id) where (state in (4, 5));

-- An attempt of a delivery. outcome: uas.webhook.v1.AttemptOutcome. answer: the first 2 KiB of the
-- body.
create table webhook_attempt (
  delivery_id uuid not null,
  start_time timestamptz not null,
  number int not null,
  status int not null,
  dns_ms int not null,
  connect_ms int not null,
  tls_ms int not null,
  first_byte_ms int not null,
  total_ms int not null,
  outcome smallint not null,
  address_class smallint not null,
  answer bytea not null,
  constraint webhook_attempt_pkey primary key (delivery_id, number)
);

-- The health of a receiver's origin. failures: in a row. open_until: the breaker is open; nothing
-- is sent before. probes: failed probes since it opened. dead_time: it has failed for so long that
-- its deliveries are parked.
create table webhook_endpoint (
  id uuid not null,
  account_id uuid not null,
  origin text not null,
  failures int not null default 0,
  probes int not null default 0,
  failing_since timestamptz null,
  open_until timestamptz null,
  dead_time timestamptz null,
  success_time timestamptz null,
  failure_time timestamptz null,
  constraint webhook_endpoint_pkey primary key (id),
  constraint webhook_endpoint_dead_time_check check (dead_time is null or failing_since is not null)
) with (fillfactor = 80);
create index webhook_endpoint_account_id_id_index on webhook_endpoint (account_id, id);
