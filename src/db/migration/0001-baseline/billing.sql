-- Money: balances, holds, the ledger, redeem codes, prices. Amounts are nano-USD. Only the ledger_*
-- functions write balance, open_hold, hold_*, key_spend, ledger_charge and ledger_side.
--
-- PostgreSQL parses each check constraint of a table again in every statement that writes to it:
-- with nine of them in the tables of a batch, a batch of one call took 14 % more time. So balance
-- and key_spend have one each, and open_hold and the ledger none: ledger_apply refuses negative
-- amounts, and the audit checks for them.

-- The hot row of every account. It changes with every batch: a low fillfactor keeps the new
-- versions on the same page (HOT). Vacuum starts by count, because a share of a small table is
-- never reached. No foreign key to the account: rooms share no constraints, and each would cost a
-- lock per batch. low_below: see account.low_balance_threshold. budget_time: when a batch was last
-- counted in budgets; null if neither the account nor one of its keys has any. newest_hold: the
-- highest id of its holds, open or ended; null if it never had one. A higher id needs no search.
create table balance (
  account_id uuid not null,
  available bigint not null default 0,
  held bigint not null default 0,
  low_below bigint null,
  budget_time timestamptz null,
  newest_hold uuid null,
  constraint balance_pkey primary key (account_id),
  constraint balance_check check (available >= 0 and held >= 0)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Money set aside for running calls: the open holds of all accounts. A hold that ends moves from
-- this table to ledger_charge. So the table stays as small as the number of running calls, and its
-- only index is its key. node_id: the process; null if the hold was made inside another
-- transaction. key_limit: the key's lifetime limit when the hold was made, for its growth. steps:
-- number of its rows in hold_step; null means none. checkpointed: there may be a row of
-- hold_checkpoint; a settlement reads it only then. request_id: identifies a call that was lost
-- before it was recorded. budget_time: when the hold was counted in budgets; its cost counts in the
-- periods of that time. Null if there were none. Vacuum starts by count, because nearly all rows
-- are dead.
create table open_hold (
  id uuid not null,
  account_id uuid not null,
  amount bigint not null,
  expires_at timestamptz not null,
  node_id uuid null,
  key_id uuid null,
  key_limit bigint null,
  steps integer null,
  checkpointed boolean null,
  request_id text null,
  budget_time timestamptz null,
  constraint open_hold_pkey primary key (id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- The state with which an open hold is settled if its process dies. Rewritten every few seconds,
-- deleted with the settlement.
create table hold_checkpoint (
  hold_id uuid not null,
  cost bigint not null,
  record json null,
  constraint hold_checkpoint_pkey primary key (hold_id),
  constraint hold_checkpoint_cost_check check (cost >= 0)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- The growth of a hold, step by step: its first amount is its amount less all of these.
-- Append-only.
create table hold_step (
  hold_id uuid not null,
  amount bigint not null,
  create_time timestamptz not null default clock_timestamp(),
  n integer not null,
  constraint hold_step_pkey primary key (hold_id, n),
  constraint hold_step_amount_check check (amount > 0)
) partition by range (hold_id);
create table hold_step_default partition of hold_step default;

-- Amounts that each key has spent in its life and holds now. carried: the part of spent from before
-- holds recorded their key. Written by every batch: fillfactor and vacuum as for the balance.
create table key_spend (
  key_id uuid not null,
  account_id uuid not null,
  spent bigint not null default 0,
  held bigint not null default 0,
  carried bigint not null default 0,
  constraint key_spend_pkey primary key (key_id),
  constraint key_spend_check check (held >= 0 and spent >= 0)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index key_spend_account_id_index on key_spend (account_id);

-- The maximum spending of a key or an account in each day (period 1), week (2) or month (3) of a
-- time zone. owner_id: the key, or the account itself. spent, held: amounts of the calls that were
-- held since start_time, the start of the current period. end_time: start of the next period; the
-- first batch after it begins that period. alerted: the highest threshold in percent with an alert
-- in this period. carried: the part of spent from before the budget was set. Only entries after
-- from_seq add to it, so that the audit can compute the rest. Written by every batch of an account
-- that has budgets: fillfactor and vacuum as for the balance.
create table budget (
  owner_id uuid not null,
  period smallint not null,
  account_id uuid not null,
  amount bigint not null,
  time_zone text not null,
  start_time timestamptz not null,
  end_time timestamptz not null,
  spent bigint not null default 0,
  held bigint not null default 0,
  alerted smallint not null default 0,
  carried bigint not null default 0,
  from_seq bigint not null default 0,
  constraint budget_pkey primary key (owner_id, period),
  constraint budget_period_check check (period >= 1 and period <= 3),
  constraint budget_amount_check check (amount > 0),
  constraint budget_held_check check (held >= 0),
  constraint budget_spent_check check (spent >= 0)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index budget_account_id_end_time_index on budget (account_id, end_time);

-- A process from its start to its end, by the database's clock. steady_time: since when it has been
-- in touch without a gap; only a process that has been so for long enough may end others, else an
-- outage of the database would end them all. ended: the process has closed, or its holds are being
-- settled for it.
create table node (
  id uuid not null,
  name text not null,
  start_time timestamptz not null default now(),
  seen_time timestamptz not null default now(),
  steady_time timestamptz not null default now(),
  ended timestamptz null,
  constraint node_pkey primary key (id)
) with (fillfactor = 50);

-- Charges: one row for each ended hold, whether its call had a cost or not. cost: the cost of the
-- call, the revenue. paid: the part that the customer paid; the rest is the platform's loss.
-- vendor_cost: the vendor's charge to the operator; null if it is zero or unknown. balance_after:
-- the customer's balance after it. One row instead of an entry for each side took an eighth of the
-- instructions of a call, and it balances by its form. The primary key makes a double charge
-- impossible, and lists an account's charges. seq: drawn by each writer while it locks its account;
-- entries of one batch may share a number. So the audit finds new entries independently of clocks,
-- by an index that costs a writer almost no time.
--
-- held, key_id, steps, budget_time: copied from the hold. expired: the hold was ended for its
-- process (null: it was not); the call may settle later, in ledger_side.
create sequence ledger_entry_seq;
create table ledger_charge (
  id uuid not null,
  account_id uuid not null,
  create_time timestamptz not null default now(),
  seq bigint not null,
  cost bigint not null,
  paid bigint not null,
  balance_after bigint not null,
  vendor_cost bigint null,
  held bigint not null,
  key_id uuid null,
  steps integer null,
  budget_time timestamptz null,
  expired boolean null,
  constraint ledger_charge_pkey primary key (account_id, id)
) partition by range (id);
create table ledger_charge_default partition of ledger_charge default;
create index ledger_charge_loss_index on ledger_charge (id) where (paid < cost);
create index ledger_charge_seq_index on ledger_charge using brin (seq)
  with (pages_per_range = 32, autosummarize = on);

-- The sides of all other transactions: top-ups, refunds, corrections. account: 1 customer, 2
-- revenue, 3 cash_in, 4 promo, 5 refund, 6 platform_loss, 7 upstream_cost, 8 vendor_payable (the
-- other side of 7). kind: uas.billing.v1.LedgerKind. balance_after: the customer's balance after
-- this entry; null for other accounts' entries. call_id: the call that a late settlement corrects.
-- The primary key makes a double booking impossible. seq: as in ledger_charge; all sides of a
-- transaction have the same, so that no window of an audit divides them.
create table ledger_side (
  txn_id uuid not null,
  account_id uuid not null,
  amount bigint not null,
  create_time timestamptz not null default now(),
  account smallint not null,
  kind smallint not null,
  reference text null,
  balance_after bigint null,
  call_id uuid null,
  seq bigint not null,
  constraint ledger_side_pkey primary key (txn_id, account)
) partition by range (txn_id);
create table ledger_side_default partition of ledger_side default;
create index ledger_side_customer_index on ledger_side (account_id, txn_id) where (account = 1);
create index ledger_side_call_id_index on ledger_side (call_id) where (call_id is not null);
create index ledger_side_loss_index on ledger_side (coalesce(call_id, txn_id)) where (account = 6);
create index ledger_side_seq_index on ledger_side using brin (seq)
  with (pages_per_range = 32, autosummarize = on);

-- The whole ledger: each side of each transaction is an entry.
create view ledger_entry as
  select c.id as txn_id, c.account_id, e.amount, c.create_time, e.account, 2::smallint as kind,
      null::text as reference, e.balance_after, null::uuid as call_id, c.seq
    from ledger_charge c
      cross join lateral (values (1::smallint, -c.paid, c.balance_after), (2, c.cost, null),
        (6, c.paid - c.cost, null), (7, -c.vendor_cost, null), (8, c.vendor_cost, null)
      ) as e(account, amount, balance_after)
    where e.amount <> 0
  union all
  select txn_id, account_id, amount, create_time, account, kind, reference, balance_after, call_id, seq
    from ledger_side where amount <> 0;

-- The holds of calls without a cost: failed, refused, free. No entry refers to them, so they are
-- removed by month. seq: as in ledger_charge.
create table released_hold (
  id uuid not null,
  account_id uuid not null,
  create_time timestamptz not null default now(),
  seq bigint not null,
  held bigint not null,
  key_id uuid null,
  steps integer null,
  constraint released_hold_pkey primary key (account_id, id)
) partition by range (id);
create table released_hold_default partition of released_hold default;
create index released_hold_seq_index on released_hold using brin (seq)
  with (pages_per_range = 32, autosummarize = on);

-- Every hold that has ended: each can end once only. Look for one by account and id.
create view ended_hold as
  select id, account_id, seq, cost, held, key_id, steps, expired from ledger_charge
  union all
  select id, account_id, seq, 0::bigint, held, key_id, steps, null from released_hold;

-- Every hold, open and ended. state: 1 open, 2 settled, 3 released, 4 expired (ended for its
-- process and not settled since). settled: the cost of its call, with the correction of a late
-- settlement. Search by account and id: the primary key of an ended hold begins with its account.
create view hold as
  select id, account_id, amount, null::bigint as settled, 1::smallint as state, expires_at, node_id, key_id,
      coalesce(steps, 0) as steps, request_id, budget_time
    from open_hold
  union all
  select c.id, c.account_id, c.held, c.cost + coalesce(l.cost, 0),
      (case when c.expired and l.cost is null then 4 when c.cost + coalesce(l.cost, 0) > 0 then 2 else 3 end)::smallint,
      null, null, c.key_id, coalesce(c.steps, 0), null, c.budget_time
    from ledger_charge c left join lateral (
      select sum(s.amount)::bigint as cost from (
        select amount from ledger_side where txn_id = c.id and account = 2 and kind = 2 and call_id is null
        union all select amount from ledger_side where call_id = c.id and account = 2 and kind = 6
      ) s where c.expired
    ) l on true
  union all
  select id, account_id, held, 0, 3, null, null, key_id, coalesce(steps, 0), null, null from released_hold;

-- The chain of audits. Everything up to seq, and every call below hold_id, has been audited.
-- contents: JSON with the previous checkpoint's hash, a digest of the entries since then, and the
-- sums of all entries. hash: SHA-256 of contents.
create table ledger_checkpoint (
  n bigint not null,
  create_time timestamptz not null default now(),
  seq bigint not null,
  hold_id uuid not null,
  contents text not null,
  hash text not null,
  constraint ledger_checkpoint_pkey primary key (n)
);

-- Balance of each account and spending of each key by the audited entries. Written with each
-- checkpoint.
create table audited_account (
  account_id uuid not null,
  amount bigint not null,
  constraint audited_account_pkey primary key (account_id)
);
create table audited_key (
  key_id uuid not null,
  spent bigint not null,
  constraint audited_key_pkey primary key (key_id)
);

-- The same of each budget: the period that the sum is of began at start_time, and counts entries
-- after from_seq.
create table audited_budget (
  owner_id uuid not null,
  period smallint not null,
  start_time timestamptz not null,
  from_seq bigint not null,
  spent bigint not null,
  constraint audited_budget_pkey primary key (owner_id, period)
);

-- The rows that retention has removed: ids of hold_step, released_hold or call below first_id.
create table retention_floor (
  name text not null,
  first_id uuid not null,
  constraint retention_floor_pkey primary key (name)
);

-- Makes top-ups, refunds, adjustments and promotions idempotent: one booking per account and
-- reference.
create table booking (
  account_id uuid not null,
  reference text not null,
  kind smallint not null,
  txn_id uuid not null,
  amount bigint not null,
  call_id uuid null,
  create_time timestamptz not null default now(),
  reason text null,
  constraint booking_pkey primary key (account_id, reference),
  constraint booking_amount_check check (amount <> 0)
);
create index booking_call_id_index on booking (call_id) where (call_id is not null);

-- Only a hash of the code is stored: a reader of the database cannot redeem it. kind:
-- uas.billing.v1.LedgerKind, a payment (1) or a promotion (5). account_id: the account that
-- redeemed it.
create table redeem_code (
  id uuid not null,
  code_hash bytea not null,
  hint text not null,
  kind smallint not null,
  amount bigint not null,
  note text not null default '',
  create_time timestamptz not null default now(),
  expire_time timestamptz null,
  revoke_time timestamptz null,
  redeem_time timestamptz null,
  account_id uuid null,
  constraint redeem_code_pkey primary key (id),
  constraint redeem_code_code_hash_unique unique (code_hash),
  constraint redeem_code_kind_check check (kind in (1, 5)),
  constraint redeem_code_amount_check check (amount > 0),
  constraint redeem_code_end_check check (redeem_time is null or revoke_time is null)
);

-- Every price that a charge was made with. version: the hash of its content.
create table price_version (
  version text not null,
  price jsonb not null,
  create_time timestamptz not null default now(),
  constraint price_version_pkey primary key (version)
);

-- The price history of each model. from_time: the start of its validity by the configuration; null
-- means always. load_time: when it was first loaded.
create table model_price (
  model text not null,
  version text not null,
  from_time timestamptz null,
  load_time timestamptz not null default now(),
  constraint model_price_pkey primary key (model, version)
);
