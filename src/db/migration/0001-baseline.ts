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
 * Creates everything. The functions are those of `src/db/sql/` as they are now, as long as nothing is released:
 * see "The database" in CONTRIBUTING.md for what the first release changes.
 */
export class Baseline0001 extends Migration {
  override up(): void {
    for (const room of rooms) this.addSql(readSql(`migration/0001-baseline/${room}.sql`));
    for (const text of readFunctions("sql/")) this.addSql(text);
    this.addSql(readSql("migration/0001-baseline/triggers.sql"));
  }
}
