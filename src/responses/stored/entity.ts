/** The tables of stored responses, and of reasoning for clients that cannot carry it. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * A response of the responses style.
 *
 * - `vendor`: the vendor that stores it; empty if it is stored here as JSON in `response` and
 *   `input`.
 * - `itemIds`: the IDs of the items in both. `previousId`: the continued response.
 * - Of a background response: `taskId`: its task; `request`: the exchange that generates it, null
 *   once it is complete; `vendorId`: the vendor's ID of the response, if the vendor stores it too.
 */
export const StoredResponseEntity = defineEntity({
  name: "StoredResponseEntity",
  tableName: "stored_response",
  properties: {
    accountId: p.uuid().primary(),
    id: p.text().primary(),
    model: p.text(),
    vendor: p.text(),
    previousId: p.text().nullable(),
    response: p.blob().nullable().lazy(),
    input: p.blob().nullable().lazy(),
    itemIds: p.array().columnType("text[]"),
    bytes: p.integer(),
    taskId: p.uuid().nullable(),
    request: p.blob().nullable().lazy(),
    vendorId: p.text().nullable(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    expiresAt: p.datetime().columnType("timestamptz"),
  },
  indexes: [
    { name: "stored_response_expires_at_index", properties: ["expiresAt"] },
    { name: "stored_response_account_id_expires_at_index", properties: ["accountId", "expiresAt"] },
    { name: "stored_response_item_ids_index", properties: ["itemIds"], type: "gin" },
  ],
  checks: [
    { name: "stored_response_bytes_check", expression: "bytes >= 0" },
    {
      name: "stored_response_kept_check",
      expression: "vendor <> '' or (response is not null and input is not null)",
    },
    {
      name: "stored_response_request_check",
      expression: "request is null or task_id is not null",
    },
  ],
});

/**
 * The reasoning of a turn with tool calls, found by the SHA-256 of each call's id. The row of the
 * turn's first call has `sealed`; the other rows refer to it by `firstDigest`.
 */
export const KeptReasoningEntity = defineEntity({
  name: "KeptReasoningEntity",
  tableName: "kept_reasoning",
  properties: {
    accountId: p.uuid().primary(),
    digest: p.blob().primary(),
    firstDigest: p.blob(),
    sealed: p.blob().nullable().lazy(),
    expiresAt: p.datetime().columnType("timestamptz"),
  },
  indexes: [{ name: "kept_reasoning_expires_at_index", properties: ["expiresAt"] }],
  checks: [
    {
      name: "kept_reasoning_sealed_check",
      expression: "(digest = first_digest) = (sealed is not null)",
    },
  ],
});

/**
 * Events of a streamed background response, several to a row; `last`: the number of the row's last
 * event. A trigger deletes them with their response.
 */
export const ResponseEventEntity = defineEntity({
  name: "ResponseEventEntity",
  tableName: "response_event",
  properties: {
    accountId: p.uuid().primary(),
    responseId: p.text().primary(),
    last: p.integer().primary(),
    events: p.blob().lazy(),
  },
});

/** Registered by the database. */
export const responseEntities = [StoredResponseEntity, KeptReasoningEntity, ResponseEventEntity];
