/** The tables of rate limits. */
import { defineEntity, p } from "@mikro-orm/core";

/** Usage of a key, an account or a model in the last minute. Written by an SQL function only. */
export const LimitUseEntity = defineEntity({
  name: "LimitUseEntity",
  tableName: "limit_use",
  properties: {
    subject: p.text().primary(),
    slice: p.bigint(),
    requests: p.array().columnType("bigint[]"),
    tokens: p.array().columnType("bigint[]"),
  },
});

/** Number of calls of a subject that a process runs. */
export const LimitRunningEntity = defineEntity({
  name: "LimitRunningEntity",
  tableName: "limit_running",
  properties: {
    subject: p.text().primary(),
    nodeId: p.uuid().primary(),
    running: p.integer(),
  },
});

/** Registered by the database. */
export const limitEntities = [LimitUseEntity, LimitRunningEntity];
