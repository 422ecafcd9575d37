import type { Migration } from "../migrate.ts";
import { readSql } from "../sql.ts";

/** Adds the revisions of the configuration, its secrets, and what is in force in each process. */
export const configuration0003: Migration = {
  name: "0003-configuration",
  compatibleFrom: "0001-baseline",
  statements: () => [readSql("migration/0003-configuration/tables.sql")],
};
