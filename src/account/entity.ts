/** What the account room keeps. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * The owner of keys and of one balance. Its money is in the tables of billing. `state`: AccountState.
 * `discountBp`: basis points. `lowBalanceThreshold`: nano-USD. `changeTime` is set by a trigger.
 */
export const AccountEntity = defineEntity({
  name: "AccountEntity",
  tableName: "account",
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    state: p.smallint().default(1),
    suspendReason: p.text().nullable(),
    suspendTime: p.datetime().columnType("timestamptz").nullable(),
    discountBp: p.integer().default(0),
    lowBalanceThreshold: p.bigint().nullable(),
    changeTime: p.datetime().columnType("timestamptz").defaultRaw("now()").lazy(),
  },
  indexes: [{ name: "account_change_time_index", properties: ["changeTime"] }],
  checks: [
    { name: "account_state_check", expression: "state >= 1 and state <= 2" },
    {
      name: "account_discount_bp_check",
      expression: "discount_bp >= 0 and discount_bp <= 10000",
    },
    { name: "account_low_balance_threshold_check", expression: "low_balance_threshold > 0" },
  ],
});

/** The tables of the account room. */
export const accountEntities = [AccountEntity] as const;
