/** The whole schema: tables by room, then every SQL function, then the triggers that call them. */
import { Migration } from "@mikro-orm/migrations";
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

/**
 * Creates everything. The functions are the current ones of `src/db/sql/` until the first release:
 * see "The database" in CONTRIBUTING.md for the change with that release.
 */
export class Baseline0001 extends Migration {
  override up(): void {
    for (const room of rooms) this.addSql(readSql(`migration/0001-baseline/${room}.sql`));
    for (const text of readFunctions("sql/")) this.addSql(text);
    this.addSql(readSql("migration/0001-baseline/triggers.sql"));
  }
}
