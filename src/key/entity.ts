import { defineEntity, p } from "@mikro-orm/core";

/**
 * An API key, found by `digest`. The key itself is stored encrypted in another table, or not at
 * all. A trigger sets `changeTime`, and `deleteTime` if the row becomes deleted. `models`: null
 * means every model. `state`: KeyState. `spendLimit`: nano-USD.
 */
export const ApiKeyEntity = defineEntity({
  name: "ApiKeyEntity",
  tableName: "api_key",
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    name: p.text(),
    digest: p.blob().lazy().unique("api_key_digest_unique"),
    masked: p.text(),
    models: p.array().columnType("text[]").nullable(),
    state: p.smallint().default(1),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    changeTime: p.datetime().columnType("timestamptz").defaultRaw("now()").lazy(),
    deleteTime: p.datetime().columnType("timestamptz").nullable(),
    expireTime: p.datetime().columnType("timestamptz").nullable(),
    spendLimit: p.bigint().nullable(),
    rpm: p.integer().nullable(),
    tpm: p.integer().nullable(),
    concurrency: p.integer().nullable(),
  },
  indexes: [
    { name: "api_key_account_id_id_index", properties: ["accountId", "id"] },
    { name: "api_key_change_time_index", properties: ["changeTime"] },
  ],
  checks: [
    { name: "api_key_models_check", expression: "cardinality(models) > 0" },
    { name: "api_key_state_check", expression: "state >= 1 and state <= 3" },
    { name: "api_key_limits_check", expression: "rpm > 0 and tpm > 0 and concurrency > 0" },
    { name: "api_key_spend_limit_check", expression: "spend_limit > 0" },
  ],
});

/**
 * Last use of a key. A separate table, because every change of a key is broadcast to all processes.
 */
export const KeyUseEntity = defineEntity({
  name: "KeyUseEntity",
  tableName: "key_use",
  properties: {
    keyId: p.uuid().primary(),
    useTime: p.datetime().columnType("timestamptz"),
  },
});

/** The data key that an account's copies are encrypted with, itself encrypted. */
export const DataKeyEntity = defineEntity({
  name: "DataKeyEntity",
  tableName: "data_key",
  properties: {
    accountId: p.uuid().primary(),
    wrapped: p.blob().lazy(),
  },
});

/** An encrypted key. A trigger deletes it with its key. */
export const KeyCopyEntity = defineEntity({
  name: "KeyCopyEntity",
  tableName: "key_copy",
  properties: {
    keyId: p.uuid().primary(),
    accountId: p.uuid(),
    sealed: p.blob().lazy(),
  },
});

export const keyEntities = [ApiKeyEntity, KeyUseEntity, DataKeyEntity, KeyCopyEntity] as const;
