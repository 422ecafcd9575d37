-- Alerts: written by the ledger in the transaction of the reported event, sent afterwards.

-- kind: 1 the balance is low, 2 a budget has reached a threshold. facts: details, as the writing
-- function defines them; amounts are decimal digits in nano-USD. state: 1 new, 2 passed on to
-- webhook and e-mail. email_to: addresses that still need an e-mail; null if there is none, or it
-- was sent. email_due: time of the next attempt; during an attempt, the time when another process
-- may take over.
create table alert (
  id uuid not null,
  account_id uuid not null,
  kind smallint not null,
  facts jsonb not null,
  create_time timestamptz not null default now(),
  state smallint not null default 1,
  email_to text[] null,
  email_due timestamptz null,
  email_attempts int not null default 0,
  constraint alert_pkey primary key (id),
  constraint alert_kind_check check (kind >= 1 and kind <= 2),
  constraint alert_state_check check (state >= 1 and state <= 2),
  constraint alert_email_due_check check ((email_to is null) = (email_due is null))
);
create index alert_new_index on alert (id) where (state = 1);
create index alert_email_due_index on alert (email_due) where (email_due is not null);
