/** The tables of inference: stored responses, reasoning for clients that cannot carry it, and unlimited routes. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * A response of the responses style. `vendor`: the vendor that stores it; empty: it is stored here, and `response` and
 * `input` are its JSON. `itemIds`: the ids of the items in both. `previousId`: the response that it continues. Of a
 * background response: `taskId`: its task; `request`: the exchange that generates it, null once it is complete;
 * `vendorId`: the vendor's id of the response, where the vendor stores it too.
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
 * The reasoning of a turn with tool calls, found by the SHA-256 of each call's id. The row of the turn's first call has
 * `sealed`; the other rows refer to it by `firstDigest`.
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

/** Events of a streamed background response, several to a row; `last`: the number of the row's last event. A trigger
 * deletes them with their response. */
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

/**
 * A route whose vendor ignores output limits, with the first reply that showed it. `limitTokens`: the output limit of
 * the call `callId`; `outputTokens`: the length of its reply.
 */
export const UnlimitedRouteEntity = defineEntity({
  name: "UnlimitedRouteEntity",
  tableName: "unlimited_route",
  properties: {
    vendor: p.text().primary(),
    model: p.text().primary(),
    callId: p.uuid(),
    limitTokens: p.bigint(),
    outputTokens: p.bigint(),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
});

/**
 * An open circuit breaker, of all processes. `model` or `credential` is empty: the breaker is of the other. `failure`: why
 * it opened. `cooldownMs`: the last pause; `probeTime`: when one call may go there again.
 */
export const BreakerEntity = defineEntity({
  name: "BreakerEntity",
  tableName: "breaker",
  properties: {
    vendor: p.text().primary(),
    model: p.text().primary(),
    credential: p.text().primary(),
    failure: p.text(),
    cooldownMs: p.integer(),
    probeTime: p.datetime().columnType("timestamptz"),
    createTime: p.datetime().columnType("timestamptz").defaultRaw("now()"),
  },
});

/**
 * Attempts at a route or credential in one minute, as one process counted them. `model` or `credential` is empty, as in
 * {@link BreakerEntity}. `latencies`: successes by time to first content. `inFlight`: calls in flight at `updateTime`.
 * `failure`: the last one of the minute; empty: none.
 */
export const RouteHealthEntity = defineEntity({
  name: "RouteHealthEntity",
  tableName: "route_health",
  indexes: [{ name: "route_health_failure_index", properties: ["minute"], where: "failures > 0" }],
  properties: {
    minute: p.datetime().columnType("timestamptz").primary(),
    process: p.uuid().primary(),
    vendor: p.text().primary(),
    model: p.text().primary(),
    credential: p.text().primary(),
    attempts: p.integer(),
    failures: p.integer(),
    latencies: p.array().columnType("int[]"),
    inFlight: p.integer(),
    failure: p.text(),
    failureTime: p.datetime().columnType("timestamptz").nullable(),
    updateTime: p.datetime().columnType("timestamptz"),
  },
});

/** What a key, an account or a model has used in the last minute. Written by an SQL function only. */
export const LimitUseEntity = defineEntity({
  name: "LimitUseEntity",
  tableName: "limit_use",
  properties: {
    subject: p.text().primary(),
    slice: p.bigint(),
    requests: p.array().columnType("bigint[]"),
    tokens: p.array().columnType("bigint[]"),
    leasedUntil: p.double().default(0),
  },
});

/** How many calls of a subject a process runs. */
export const LimitRunningEntity = defineEntity({
  name: "LimitRunningEntity",
  tableName: "limit_running",
  properties: {
    subject: p.text().primary(),
    nodeId: p.uuid().primary(),
    running: p.integer(),
  },
});

/** The tables of inference. */
export const inferenceEntities = [
  StoredResponseEntity,
  KeptReasoningEntity,
  ResponseEventEntity,
  UnlimitedRouteEntity,
  BreakerEntity,
  RouteHealthEntity,
  LimitUseEntity,
  LimitRunningEntity,
] as const;
