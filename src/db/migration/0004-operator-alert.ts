import type { Migration } from "../migrate.ts";

/** The alerts of operators: one row for each condition that lasts. */
export const operatorAlert0004: Migration = {
  name: "0004-operator-alert",
  compatibleFrom: "0001-baseline",
  statements: () => [
    `create table operator_alert (
      name text not null,
      subject text not null,
      severity text not null,
      text text not null,
      begin_time timestamptz not null,
      seen_time timestamptz not null,
      sent_time timestamptz not null,
      constraint operator_alert_pkey primary key (name, subject)
    )`,
  ],
};
