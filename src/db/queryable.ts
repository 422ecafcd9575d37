/** What the reading side of billing needs of the database. */
import type { QueryResultRow } from "pg";
import { mapDatabaseLoss as answeringOne } from "../core/database-lost.ts";

/** Runs SQL: a pool or a connection of the driver. */
export interface Queryable {
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the driver's own signature
  query<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<{ rows: R[] }>;
}

/** The same, where a database that cannot be reached is 503: it is no fault of this program. */
export function answering(pool: Queryable): Queryable {
  return {
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the driver's own signature
    query: <R extends QueryResultRow>(text: string, values?: unknown[]) =>
      answeringOne(pool.query<R>(text, values)),
  };
}
