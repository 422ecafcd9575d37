/** Queries for the reading side of billing. */
import type { QueryResultRow } from "pg";
import { mapDatabaseLoss } from "../../core/database-lost.ts";

/** Runs SQL: a pool or a connection of the driver. */
export interface Queryable {
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as the driver
  query<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<{ rows: R[] }>;
}

/** The same queries, with a lost database reported as 503. */
export function withLossMapping(pool: Queryable): Queryable {
  return {
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as the driver
    query: <R extends QueryResultRow>(text: string, values?: unknown[]) =>
      mapDatabaseLoss(pool.query<R>(text, values)),
  };
}
