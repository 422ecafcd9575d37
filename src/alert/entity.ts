import { defineEntity, p } from "@mikro-orm/core";

/**
 * The content of an alert, as defined by the SQL function that wrote it. Amounts are decimal digits
 * in nano-USD.
 */
export interface AlertFacts {
  /** Of a low balance. */
  readonly balance?: string;
  /**
   * For a low balance its threshold, in nano-USD; for a budget the reached threshold, in percent.
   */
  readonly threshold: string | number;
  /** The owner of a budget: a key or the account. */
  readonly owner?: string;
  /** A BudgetPeriod. */
  readonly period?: number;
  readonly amount?: string;
  readonly spent?: string;
  readonly timeZone?: string;
  readonly startTime?: string;
  readonly endTime?: string;
}

/**
 * A low balance or a budget that has reached a threshold. Written by SQL functions of the ledger
 * only.
 */
export const AlertEntity = defineEntity({
  name: "AlertEntity",
  tableName: "alert",
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    kind: p.smallint(),
    facts: p.json<AlertFacts>(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    state: p.smallint().default(1),
    emailTo: p.array().columnType("text[]").nullable(),
    emailDue: p.datetime().columnType("timestamptz").nullable(),
    emailAttempts: p.integer().default(0),
  },
  indexes: [
    { name: "alert_new_index", properties: ["id"], where: "state = 1" },
    { name: "alert_email_due_index", properties: ["emailDue"], where: "email_due is not null" },
  ],
  checks: [
    { name: "alert_kind_check", expression: "kind >= 1 and kind <= 2" },
    { name: "alert_state_check", expression: "state >= 1 and state <= 2" },
    { name: "alert_email_due_check", expression: "(email_to is null) = (email_due is null)" },
  ],
});

/** Something that needs the operator, as long as a process reports it. */
export const OperatorAlertEntity = defineEntity({
  name: "OperatorAlertEntity",
  tableName: "operator_alert",
  properties: {
    name: p.text().primary(),
    subject: p.text().primary(),
    severity: p.text(),
    text: p.text(),
    beginTime: p.datetime().columnType("timestamptz"),
    seenTime: p.datetime().columnType("timestamptz"),
    sentTime: p.datetime().columnType("timestamptz"),
  },
});

/** The tables of alerts. */
export const alertEntities = [AlertEntity, OperatorAlertEntity] as const;
