/** The table of routes without an output limit. */
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

/** Registered by the database. */
export const callEntities = [UnlimitedRouteEntity];
