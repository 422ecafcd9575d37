-- State that outlives a call: responses by id, the events of background responses, reasoning by
-- tool call.

-- vendor: the vendor that stores the response. If it is empty, the response is stored here, as the
-- JSON that was sent (bytes and not jsonb, so that it is returned unchanged). The key has the
-- account first, because two vendors can give the same id. task_id: the task that creates the
-- response in the background. request: the request to create it with; null once it is created.
-- vendor_id: the vendor's id, if the vendor stores it too.
create table stored_response (
  account_id uuid not null,
  id text not null,
  model text not null,
  vendor text not null,
  previous_id text null,
  response bytea null,
  input bytea null,
  item_ids text[] not null,
  bytes int not null,
  create_time timestamptz not null default now(),
  expires_at timestamptz not null,
  task_id uuid null,
  request bytea null,
  vendor_id text null,
  constraint stored_response_pkey primary key (account_id, id),
  constraint stored_response_bytes_check check (bytes >= 0),
  constraint stored_response_kept_check
    check (vendor <> '' or (response is not null and input is not null)),
  constraint stored_response_request_check check (request is null or task_id is not null)
);
create index stored_response_expires_at_index on stored_response (expires_at);
create index stored_response_account_id_expires_at_index on stored_response (account_id, expires_at);
create index stored_response_item_ids_index on stored_response using gin (item_ids);

-- The events of a response that is read as a stream, several in a row. last: the number of the last
-- one.
create table response_event (
  account_id uuid not null,
  response_id text not null,
  last int not null,
  events bytea not null,
  constraint response_event_pkey primary key (account_id, response_id, last)
);

-- digest: SHA-256 of a tool call's id. sealed: the reasoning, in the row of the turn's first call
-- only. The other calls refer to that row by first_digest, so that the reasoning of a turn with
-- many calls is stored once.
create table kept_reasoning (
  account_id uuid not null,
  digest bytea not null,
  first_digest bytea not null,
  sealed bytea null,
  expires_at timestamptz not null,
  constraint kept_reasoning_pkey primary key (account_id, digest),
  constraint kept_reasoning_sealed_check check ((digest = first_digest) = (sealed is not null))
);
create index kept_reasoning_expires_at_index on kept_reasoning (expires_at);

-- Routes whose vendors ignore the output limit of a request (R-MON-12), each with the first reply
-- that showed it.
create table unlimited_route (
  vendor text not null,
  model text not null,
  call_id uuid not null,
  limit_tokens bigint not null,
  output_tokens bigint not null,
  create_time timestamptz not null default now(),
  constraint unlimited_route_pkey primary key (vendor, model)
);
