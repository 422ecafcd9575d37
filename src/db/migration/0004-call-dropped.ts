/**
 * What of a call its vendor's or its caller's style could not carry. Null in records of older versions, which
 * may still be writing while this one starts.
 */
import { Migration } from "@mikro-orm/migrations";

export class CallDropped0004 extends Migration {
  override up(): void {
    this.addSql(`alter table "call" add column "dropped" text null`);
  }
}
