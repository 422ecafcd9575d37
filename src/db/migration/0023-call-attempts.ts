/**
 * The vendors that could not take a call before another one did: a list of `vendor`, `error_code` and `duration_ms`.
 * Null where there are none, which takes no room in a row, and in records of older versions.
 */
import { Migration } from "@mikro-orm/migrations";

export class CallAttempts0023 extends Migration {
  override up(): void {
    this.addSql(`alter table "call" add column "attempts" jsonb null`);
  }
}
