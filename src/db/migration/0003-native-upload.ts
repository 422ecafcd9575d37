/** Counts what accounts upload to vendors. */
import { Migration } from "@mikro-orm/migrations";

/** Adds the table of uploads by account and day. */
export class NativeUpload0003 extends Migration {
  override up(): void {
    this.addSql(`create table native_upload (
      account_id uuid not null,
      day date not null,
      objects integer not null,
      bytes bigint not null,
      constraint native_upload_pkey primary key (account_id, day)
    );`);
    this.addSql("create index native_upload_day_index on native_upload (day);");
  }
}
