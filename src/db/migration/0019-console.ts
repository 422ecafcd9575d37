/** What the web console shows and does beside the rooms' own tables: see the files 0019-console-*.ts beside this one. */
import { Migration } from "@mikro-orm/migrations";
import { auditStatements } from "./0019-console-audit.ts";
import { callStatements } from "./0019-console-calls.ts";
import { moneyStatements } from "./0019-console-money.ts";

/** Adds it. */
export class Console0019 extends Migration {
  override up(): void {
    for (const statement of [...callStatements, ...moneyStatements, ...auditStatements]) {
      this.addSql(statement);
    }
  }
}
