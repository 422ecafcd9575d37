/** The tables of routes without an output limit, and of calls with an idempotency key. */
import { defineEntity, p } from "@mikro-orm/core";

/**
 * A route whose vendor ignores output limits, with the first reply that showed it. `limitTokens`:
 * the output limit of the call `callId`; `outputTokens`: the length of its reply.
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
 * A call with an idempotency key, by its account and key. It counts as running while it has neither
 * ended nor a record, and its process is alive.
 *
 * - `fingerprint`: SHA-256 of the request. `callId`: the call, its hold and its charge.
 * - `isEnded`: whether it was completed or charged. A call that failed free of charge has no row.
 * - `sealed`: the reply; null if it is not kept. `bytes`: its length.
 */
export const IdempotentCallEntity = defineEntity({
  name: "IdempotentCallEntity",
  tableName: "idempotent_call",
  properties: {
    accountId: p.uuid().primary(),
    key: p.text().primary(),
    fingerprint: p.blob(),
    callId: p.uuid(),
    requestId: p.text(),
    nodeId: p.uuid(),
    isEnded: p.boolean().default(false),
    sealed: p.blob().nullable().lazy(),
    bytes: p.integer().default(0),
    expiresAt: p.datetime().columnType("timestamptz"),
  },
  indexes: [
    { name: "idempotent_call_expires_at_index", properties: ["expiresAt"] },
    {
      name: "idempotent_call_account_id_expires_at_index",
      properties: ["accountId", "expiresAt"],
    },
  ],
  checks: [{ name: "idempotent_call_bytes_check", expression: "bytes >= 0" }],
});

/** Registered by the database. */
export const callEntities = [UnlimitedRouteEntity, IdempotentCallEntity];
