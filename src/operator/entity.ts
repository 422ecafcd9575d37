/** The audit log of operators. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * An action of an operator. Append-only. `before` and `after`: the changed values, without secrets.
 */
export const AuditEntryEntity = defineEntity({
  name: "AuditEntryEntity",
  tableName: "audit_entry",
  properties: {
    id: p.uuid().primary(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("clock_timestamp()"),
    actor: p.text(),
    requestId: p.text(),
    action: p.text(),
    accountId: p.uuid().nullable(),
    subject: p.text(),
    before: p.json<Readonly<Record<string, unknown>>>().nullable(),
    after: p.json<Readonly<Record<string, unknown>>>().nullable(),
    reason: p.text(),
  },
  indexes: [
    {
      name: "audit_entry_account_id_index",
      properties: ["accountId", "id"],
      where: "account_id is not null",
    },
  ],
});

/** The tables of the operator room. */
export const operatorEntities = [AuditEntryEntity] as const;
