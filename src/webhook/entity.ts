/**
 * Tables of the webhook room. `src/db/migration/0001-baseline/webhook.sql` explains the columns.
 */
import { defineEntity, p } from "@mikro-orm/core";

/** An account's signing secrets, sealed. */
export const WebhookSecretEntity = defineEntity({
  name: "WebhookSecretEntity",
  tableName: "webhook_secret",
  properties: {
    accountId: p.uuid().primary(),
    sealed: p.blob().lazy(),
    previous: p.blob().nullable().lazy(),
    isPromoted: p.boolean().default(true),
    rotateTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
  checks: [
    {
      name: "webhook_secret_is_promoted_check",
      expression: "is_promoted or previous is not null",
    },
  ],
});

/** An event, with the bytes that are sent. */
export const WebhookEventEntity = defineEntity({
  name: "WebhookEventEntity",
  tableName: "webhook_event",
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    taskId: p.uuid(),
    endpointId: p.uuid(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    sequence: p.integer(),
    kind: p.smallint(),
    status: p.smallint(),
    progress: p.smallint(),
    callbackId: p.text(),
    url: p.text(),
    body: p.blob().lazy(),
    traceparent: p.text().nullable(),
  },
  uniques: [
    { name: "webhook_event_task_id_sequence_unique", properties: ["taskId", "sequence"] },
    { name: "webhook_event_terminal_index", properties: ["taskId"], where: "kind = 2" },
  ],
  indexes: [
    {
      name: "webhook_event_account_id_callback_id_index",
      properties: ["accountId", "callbackId", "id"],
    },
  ],
  checks: [
    { name: "webhook_event_kind_check", expression: "kind >= 1 and kind <= 3" },
    { name: "webhook_event_status_check", expression: "status >= 1 and status <= 5" },
    { name: "webhook_event_progress_check", expression: "progress >= 0 and progress <= 100" },
  ],
});

/** The sending of an event, by the event's id. */
export const WebhookDeliveryEntity = defineEntity({
  name: "WebhookDeliveryEntity",
  tableName: "webhook_delivery",
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    endpointId: p.uuid(),
    taskId: p.uuid(),
    due: p.datetime().columnType("timestamptz").defaultRaw("now()"),
    claimTime: p.datetime().columnType("timestamptz").nullable(),
    leaseUntil: p.datetime().columnType("timestamptz").nullable(),
    endTime: p.datetime().columnType("timestamptz").nullable(),
    attempts: p.integer().default(0),
    series: p.integer().default(0),
    kind: p.smallint(),
    state: p.smallint().default(1),
    isUrgent: p.boolean().default(false),
  },
  uniques: [
    { name: "webhook_delivery_waiting_index", properties: ["taskId"], where: "state = 1" },
    { name: "webhook_delivery_sending_index", properties: ["taskId"], where: "state = 2" },
  ],
  indexes: [
    {
      name: "webhook_delivery_due_index",
      properties: ["endpointId", "due"],
      where: "state = 1",
    },
    {
      name: "webhook_delivery_urgent_index",
      properties: ["endpointId", "due"],
      where: "state = 1 and is_urgent",
    },
    { name: "webhook_delivery_over_index", properties: ["state", "id"], where: "state in (4, 5)" },
    { name: "webhook_delivery_account_id_id_index", properties: ["accountId", "id"] },
    { name: "webhook_delivery_endpoint_id_id_index", properties: ["endpointId", "id"] },
  ],
  checks: [
    { name: "webhook_delivery_kind_check", expression: "kind >= 1 and kind <= 3" },
    { name: "webhook_delivery_state_check", expression: "state >= 1 and state <= 5" },
    {
      name: "webhook_delivery_lease_until_check",
      expression: "(state = 2) = (lease_until is not null)",
    },
  ],
});

/** One attempt of a delivery. */
export const WebhookAttemptEntity = defineEntity({
  name: "WebhookAttemptEntity",
  tableName: "webhook_attempt",
  properties: {
    deliveryId: p.uuid().primary(),
    startTime: p.datetime().columnType("timestamptz"),
    number: p.integer().primary(),
    status: p.integer(),
    dnsMs: p.integer(),
    connectMs: p.integer(),
    tlsMs: p.integer(),
    firstByteMs: p.integer(),
    totalMs: p.integer(),
    outcome: p.smallint(),
    addressClass: p.smallint(),
    answer: p.blob(),
  },
});

/** A receiver's origin: whether it answers. */
export const WebhookEndpointEntity = defineEntity({
  name: "WebhookEndpointEntity",
  tableName: "webhook_endpoint",
  properties: {
    id: p.uuid().primary(),
    accountId: p.uuid(),
    origin: p.text(),
    failures: p.integer().default(0),
    probes: p.integer().default(0),
    failingSince: p.datetime().columnType("timestamptz").nullable(),
    openUntil: p.datetime().columnType("timestamptz").nullable(),
    deadTime: p.datetime().columnType("timestamptz").nullable(),
    successTime: p.datetime().columnType("timestamptz").nullable(),
    failureTime: p.datetime().columnType("timestamptz").nullable(),
  },
  indexes: [{ name: "webhook_endpoint_account_id_id_index", properties: ["accountId", "id"] }],
  checks: [
    {
      name: "webhook_endpoint_dead_time_check",
      expression: "dead_time is null or failing_since is not null",
    },
  ],
});

/** The tables of the webhook room. */
export const webhookEntities = [
  WebhookSecretEntity,
  WebhookEventEntity,
  WebhookDeliveryEntity,
  WebhookAttemptEntity,
  WebhookEndpointEntity,
] as const;
