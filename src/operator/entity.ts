/** The audit log of operators, and the configuration that they applied. */
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

/**
 * A configuration that was put into force. Append-only; the newest one counts. `document`: null if
 * it returned to the file of each gateway.
 */
export const ConfigRevisionEntity = defineEntity({
  name: "ConfigRevisionEntity",
  tableName: "config_revision",
  properties: {
    number: p.bigint("string").primary().autoincrement(false),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("clock_timestamp()"),
    author: p.text(),
    note: p.text(),
    document: p.text().nullable(),
    hash: p.text().nullable(),
  },
});

/** A secret of the configuration, encrypted with the master key. */
export const ConfigSecretEntity = defineEntity({
  name: "ConfigSecretEntity",
  tableName: "config_secret",
  properties: {
    name: p.text().primary(),
    sealed: p.blob(),
    author: p.text(),
    updateTime: p.datetime().columnType("timestamptz").defaultRaw("clock_timestamp()"),
  },
});

/** The configuration in force in a process. `problem`: why it could not load another one. */
export const ConfigProcessEntity = defineEntity({
  name: "ConfigProcessEntity",
  tableName: "config_process",
  properties: {
    processId: p.uuid().primary(),
    source: p.text(),
    hash: p.text(),
    loadTime: p.datetime().columnType("timestamptz"),
    needsRestart: p.array().columnType("text[]"),
    problem: p.text().nullable(),
  },
});

/**
 * A credential of a service, found by `digest` or, until `previousExpireTime`, by `previousDigest`.
 */
export const ServiceCredentialEntity = defineEntity({
  name: "ServiceCredentialEntity",
  tableName: "service_credential",
  properties: {
    name: p.text().primary(),
    digest: p.blob(),
    masked: p.text(),
    permissions: p.array().columnType("text[]"),
    isDisabled: p.boolean().default(false),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    expireTime: p.datetime().columnType("timestamptz").nullable(),
    previousDigest: p.blob().nullable(),
    previousExpireTime: p.datetime().columnType("timestamptz").nullable(),
  },
  uniques: [
    { name: "service_credential_digest_unique", properties: ["digest"] },
    { name: "service_credential_previous_digest_unique", properties: ["previousDigest"] },
  ],
});

/** The tables of the operator room. */
export const operatorEntities = [
  AuditEntryEntity,
  ConfigRevisionEntity,
  ConfigSecretEntity,
  ConfigProcessEntity,
  ServiceCredentialEntity,
] as const;
