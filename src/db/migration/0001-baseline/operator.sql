-- Actions of operators. Written in the transaction of the action, and never changed. actor: the
-- operator, in words. before and after: what the action changed of its subject, without secrets.
create table audit_entry (
  id uuid not null,
  create_time timestamptz not null default clock_timestamp(),
  actor text not null,
  request_id text not null,
  action text not null,
  account_id uuid null,
  subject text not null,
  before jsonb null,
  after jsonb null,
  reason text not null,
  constraint audit_entry_pkey primary key (id)
);
create index audit_entry_account_id_index on audit_entry (account_id, id) where (account_id is not null);
