/** Follows a database clock that is set forward too: `clock_follow` has one more parameter, and one more result. */
import { Migration } from "@mikro-orm/migrations";
import { readFunctions } from "../sql.ts";

/** Replaces the function. Processes of the version before, which give three parameters, can still call it. */
export class ClockForward0002 extends Migration {
  override up(): void {
    this.addSql("drop function clock_follow;");
    for (const text of readFunctions("migration/0002-clock-forward/")) this.addSql(text);
  }
}
