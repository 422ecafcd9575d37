/** Tables of billing. SQL functions alone write the balance, the holds and the entries. */
import { defineEntity, p } from "@mikro-orm/core";

/** The balance of an account in nano-USD. The hot row: read it, never write it through the ORM. */
export const BalanceEntity = defineEntity({
  name: "BalanceEntity",
  tableName: "balance",
  properties: {
    accountId: p.uuid().primary(),
    available: p.bigint().defaultRaw("0"),
    held: p.bigint().defaultRaw("0"),
    /** A balance below this amount is reported. Null without an alert. */
    lowBelow: p.bigint().nullable(),
    /** Time of the last batch that was counted in budgets. Null if the account has no budget. */
    budgetTime: p.datetime().columnType("timestamptz").nullable(),
    /** The highest id of its holds, open or ended. Null: it never had one. */
    newestHold: p.uuid().nullable(),
  },
  checks: [{ name: "balance_check", expression: "available >= 0 and held >= 0" }],
});

/** Money set aside for a call that runs. The view `hold` has the ended ones too. */
export const OpenHoldEntity = defineEntity({
  name: "OpenHoldEntity",
  tableName: "open_hold",
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    amount: p.bigint(),
    expiresAt: p.datetime().columnType("timestamptz"),
    nodeId: p.uuid().nullable(),
    keyId: p.uuid().nullable(),
    keyLimit: p.bigint().nullable(),
    steps: p.integer().nullable(),
    checkpointed: p.boolean().nullable(),
    requestId: p.text().nullable(),
    budgetTime: p.datetime().columnType("timestamptz").nullable(),
  },
});

/** The charge of an open hold if its process dies. */
export const HoldCheckpointEntity = defineEntity({
  name: "HoldCheckpointEntity",
  tableName: "hold_checkpoint",
  properties: {
    holdId: p.uuid().primary(),
    cost: p.bigint(),
    record: p.json<Readonly<Record<string, unknown>>>().columnType("json").nullable(),
  },
  checks: [{ name: "hold_checkpoint_cost_check", expression: "cost >= 0" }],
});

/** An extension of a hold. Append-only. */
export const HoldStepEntity = defineEntity({
  name: "HoldStepEntity",
  tableName: "hold_step",
  properties: {
    holdId: p.uuid().primary(),
    amount: p.bigint(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("clock_timestamp()"),
    n: p.integer().primary(),
  },
  checks: [{ name: "hold_step_amount_check", expression: "amount > 0" }],
});

/** The spent and held amounts of a key. */
export const KeySpendEntity = defineEntity({
  name: "KeySpendEntity",
  tableName: "key_spend",
  properties: {
    keyId: p.uuid().primary(),
    accountId: p.uuid(),
    spent: p.bigint().defaultRaw("0"),
    held: p.bigint().defaultRaw("0"),
    carried: p.bigint().defaultRaw("0"),
  },
  indexes: [{ name: "key_spend_account_id_index", properties: ["accountId"] }],
  checks: [{ name: "key_spend_check", expression: "held >= 0 and spent >= 0" }],
});

/** A spending limit of a key or an account (`ownerId`) per period. `period`: BudgetPeriod. */
export const BudgetEntity = defineEntity({
  name: "BudgetEntity",
  tableName: "budget",
  properties: {
    ownerId: p.uuid().primary(),
    period: p.smallint().primary(),
    accountId: p.uuid(),
    amount: p.bigint(),
    timeZone: p.text(),
    startTime: p.datetime().columnType("timestamptz"),
    endTime: p.datetime().columnType("timestamptz"),
    spent: p.bigint().defaultRaw("0"),
    held: p.bigint().defaultRaw("0"),
    alerted: p.smallint().default(0),
    carried: p.bigint().defaultRaw("0"),
    fromSeq: p.bigint().defaultRaw("0"),
  },
  indexes: [{ name: "budget_account_id_end_time_index", properties: ["accountId", "endTime"] }],
  checks: [
    { name: "budget_period_check", expression: "period >= 1 and period <= 3" },
    { name: "budget_amount_check", expression: "amount > 0" },
    { name: "budget_held_check", expression: "held >= 0" },
    { name: "budget_spent_check", expression: "spent >= 0" },
  ],
});

/** A process from its start to its end, in the database's time. */
export const NodeEntity = defineEntity({
  name: "NodeEntity",
  tableName: "node",
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    startTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    seenTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    steadyTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    ended: p.datetime().columnType("timestamptz").nullable(),
  },
});

/**
 * The charge of a call when its hold ended, in nano-USD: all sides of one transaction, and the
 * hold. Append-only.
 */
export const LedgerChargeEntity = defineEntity({
  name: "LedgerChargeEntity",
  tableName: "ledger_charge",
  properties: {
    accountId: p.uuid().primary(),
    id: p.uuid().primary(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    seq: p.bigint(),
    cost: p.bigint(),
    paid: p.bigint(),
    balanceAfter: p.bigint(),
    vendorCost: p.bigint().nullable(),
    held: p.bigint(),
    keyId: p.uuid().nullable(),
    steps: p.integer().nullable(),
    budgetTime: p.datetime().columnType("timestamptz").nullable(),
    expired: p.boolean().nullable(),
  },
  indexes: [
    { name: "ledger_charge_loss_index", properties: ["id"], where: "paid < cost" },
    {
      name: "ledger_charge_seq_index",
      expression:
        "create index ledger_charge_seq_index on ledger_charge using brin (seq) " +
        "with (pages_per_range = 32, autosummarize = on)",
    },
  ],
});

/** The hold of a free call, in nano-USD. Removed by month. */
export const ReleasedHoldEntity = defineEntity({
  name: "ReleasedHoldEntity",
  tableName: "released_hold",
  properties: {
    accountId: p.uuid().primary(),
    id: p.uuid().primary(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    seq: p.bigint(),
    held: p.bigint(),
    keyId: p.uuid().nullable(),
    steps: p.integer().nullable(),
  },
  indexes: [
    {
      name: "released_hold_seq_index",
      expression:
        "create index released_hold_seq_index on released_hold using brin (seq) " +
        "with (pages_per_range = 32, autosummarize = on)",
    },
  ],
});

/**
 * One side of a transaction that is no charge. Append-only. `account`: see
 * `src/db/migration/0001-baseline/billing.sql`; `kind`: LedgerKind. The view `ledger_entry` has the
 * sides of charges too, in the same columns.
 */
export const LedgerSideEntity = defineEntity({
  name: "LedgerSideEntity",
  tableName: "ledger_side",
  properties: {
    txnId: p.uuid().primary(),
    accountId: p.uuid(),
    amount: p.bigint(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    account: p.smallint().primary(),
    kind: p.smallint(),
    reference: p.text().nullable(),
    balanceAfter: p.bigint().nullable(),
    callId: p.uuid().nullable(),
    seq: p.bigint(),
  },
  indexes: [
    {
      name: "ledger_side_loss_index",
      expression:
        "create index ledger_side_loss_index on ledger_side (coalesce(call_id, txn_id)) where (account = 6)",
    },
    {
      name: "ledger_side_seq_index",
      expression:
        "create index ledger_side_seq_index on ledger_side using brin (seq) " +
        "with (pages_per_range = 32, autosummarize = on)",
    },
    {
      name: "ledger_side_call_id_index",
      properties: ["callId"],
      where: "call_id is not null",
    },
    {
      name: "ledger_side_customer_index",
      properties: ["accountId", "txnId"],
      where: "account = 1",
    },
  ],
});

/** A link in the chain of audits: see `src/billing/audit/checkpoint.ts`. Append-only. */
export const LedgerCheckpointEntity = defineEntity({
  name: "LedgerCheckpointEntity",
  tableName: "ledger_checkpoint",
  properties: {
    n: p.bigint().primary().autoincrement(false),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    seq: p.bigint(),
    holdId: p.uuid(),
    contents: p.text(),
    hash: p.text(),
  },
});

/** The balance of an account according to the audited entries, in nano-USD. */
export const AuditedAccountEntity = defineEntity({
  name: "AuditedAccountEntity",
  tableName: "audited_account",
  properties: { accountId: p.uuid().primary(), amount: p.bigint() },
});

/** The spent amount of a key according to the audited entries, in nano-USD. */
export const AuditedKeyEntity = defineEntity({
  name: "AuditedKeyEntity",
  tableName: "audited_key",
  properties: { keyId: p.uuid().primary(), spent: p.bigint() },
});

/** The spent amount of a budget in its period according to the audited entries, in nano-USD. */
export const AuditedBudgetEntity = defineEntity({
  name: "AuditedBudgetEntity",
  tableName: "audited_budget",
  properties: {
    ownerId: p.uuid().primary(),
    period: p.smallint().primary(),
    startTime: p.datetime().columnType("timestamptz"),
    fromSeq: p.bigint(),
    spent: p.bigint(),
  },
});

/** Rows removed by retention: the IDs below `firstId` of the table `name`. */
export const RetentionFloorEntity = defineEntity({
  name: "RetentionFloorEntity",
  tableName: "retention_floor",
  properties: { name: p.text().primary(), firstId: p.uuid() },
});

/**
 * A day of call records (`data` = "calls") or of ledger entries ("ledger"), exported as a file or
 * leased to the process that exports it. The columns from `endedTime` on are null until its file
 * was stored and read back.
 */
export const ExportDayEntity = defineEntity({
  name: "ExportDayEntity",
  tableName: "export_day",
  properties: {
    data: p.text().primary(),
    day: p.date().primary(),
    lease: p.uuid().nullable(),
    leaseUntil: p.datetime().columnType("timestamptz").nullable(),
    endedTime: p.datetime().columnType("timestamptz").nullable(),
    /** Null for a day without rows, which has no file. */
    file: p.text().nullable(),
    sha256: p.text().nullable(),
    rows: p.bigint().nullable(),
    /** The costs of calls, or the entries of customers' accounts, in nano-USD. */
    sum: p.bigint().nullable(),
    vendorSum: p.bigint().nullable(),
    /** The last number of the ledger entries. Null for calls. */
    lastSeq: p.bigint().nullable(),
    /** Whether the day was compared again, after calls that took long. */
    isFinal: p.boolean().default(false),
  },
});

/** A top-up, a refund, an adjustment or a promotion: one per account and reference. */
export const BookingEntity = defineEntity({
  name: "BookingEntity",
  tableName: "booking",
  properties: {
    accountId: p.uuid().primary(),
    reference: p.text().primary(),
    kind: p.smallint(),
    txnId: p.uuid(),
    amount: p.bigint(),
    callId: p.uuid().nullable(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    reason: p.text().nullable(),
  },
  indexes: [
    { name: "booking_call_id_index", properties: ["callId"], where: "call_id is not null" },
  ],
  checks: [{ name: "booking_amount_check", expression: "amount <> 0" }],
});

/**
 * A code that is worth money, by its hash. `kind`: LedgerKind. Redeemed by an SQL function only.
 */
export const RedeemCodeEntity = defineEntity({
  name: "RedeemCodeEntity",
  tableName: "redeem_code",
  properties: {
    id: p.uuid().primary(),
    codeHash: p.blob().unique(),
    hint: p.text(),
    kind: p.smallint(),
    amount: p.bigint(),
    note: p.text().default(""),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    expireTime: p.datetime().columnType("timestamptz").nullable(),
    revokeTime: p.datetime().columnType("timestamptz").nullable(),
    redeemTime: p.datetime().columnType("timestamptz").nullable(),
    accountId: p.uuid().nullable(),
  },
  checks: [
    { name: "redeem_code_kind_check", expression: "kind in (1, 5)" },
    { name: "redeem_code_amount_check", expression: "amount > 0" },
    {
      name: "redeem_code_end_check",
      expression: "redeem_time is null or revoke_time is null",
    },
  ],
});

/** A price as it was when a charge was made with it. `version` is its content hash. */
export const PriceVersionEntity = defineEntity({
  name: "PriceVersionEntity",
  tableName: "price_version",
  properties: {
    version: p.text().primary(),
    price: p.json<Readonly<Record<string, unknown>>>(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
});

/** A price that a model has or had. */
export const ModelPriceEntity = defineEntity({
  name: "ModelPriceEntity",
  tableName: "model_price",
  properties: {
    model: p.text().primary(),
    version: p.text().primary(),
    fromTime: p.datetime().columnType("timestamptz").nullable(),
    loadTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
});

/** The tables of billing, except those of the call log. */
export const billingEntities = [
  BalanceEntity,
  OpenHoldEntity,
  HoldCheckpointEntity,
  HoldStepEntity,
  KeySpendEntity,
  BudgetEntity,
  NodeEntity,
  LedgerChargeEntity,
  LedgerSideEntity,
  ReleasedHoldEntity,
  LedgerCheckpointEntity,
  AuditedAccountEntity,
  AuditedKeyEntity,
  AuditedBudgetEntity,
  RetentionFloorEntity,
  ExportDayEntity,
  RedeemCodeEntity,
  BookingEntity,
  PriceVersionEntity,
  ModelPriceEntity,
] as const;
