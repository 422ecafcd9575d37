/** What the console's lists are narrowed by. */
import { Migration } from "@mikro-orm/migrations";

/** What is no charge (kind 2) is found without the charges around it: nothing is written to it when a call is charged. */
const moved = `
create index "ledger_entry_moved_index" on "ledger_entry" ("account_id", "txn_id")
  where (account = 1 and kind <> 2)`;

/** Deliveries that were given up (4) or overtaken (5) are few among all accounts' and looked for; no other is written to it. */
const over = `
create index "webhook_delivery_over_index" on "webhook_delivery" ("state", "id") where (state in (4, 5))`;

/** Adds the indexes. */
export class ConsoleLists0022 extends Migration {
  override up(): void {
    for (const statement of [moved, over]) this.addSql(statement);
  }
}
