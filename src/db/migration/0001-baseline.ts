/** The whole schema: tables by room, then every SQL function, then the triggers that call them. */
import type { Migration } from "../migrate.ts";
import { readFunctions, readSql } from "../sql.ts";

const rooms = [
  "account",
  "key",
  "billing",
  "call",
  "inference",
  "limit",
  "task",
  "native",
  "webhook",
  "alert",
  "operator",
];

/** Creates everything, with the functions of version 0.2.0. */
export const baseline0001: Migration = {
  name: "0001-baseline",
  compatibleFrom: "0001-baseline",
  statements: () => [
    ...rooms.map((room) => readSql(`migration/0001-baseline/${room}.sql`)),
    ...readFunctions("migration/0001-baseline/functions/"),
    readSql("migration/0001-baseline/triggers.sql"),
  ],
};
