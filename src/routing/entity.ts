/** The tables of routing: breakers and the health of routes, shared by all processes. */
import { defineEntity, p } from "@mikro-orm/core";

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

/** Registered by the database. */
export const routingEntities = [BreakerEntity, RouteHealthEntity];
