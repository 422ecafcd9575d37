/** What the account room keeps. */
import { defineEntity, p } from "@mikro-orm/core";

/** The owner of keys and of one balance. Its money is in the tables of billing. */
export const AccountEntity = defineEntity({
  name: "AccountEntity",
  tableName: "account",
  properties: {
    id: p.uuid().primary(),
    name: p.text(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
});

/** The tables of the account room. */
export const accountEntities = [AccountEntity] as const;
