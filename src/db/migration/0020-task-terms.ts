/** What a task was submitted with, beside its price: whether it costs anything where it is cancelled. */
import { Migration } from "@mikro-orm/migrations";

/** R-TSK-6 in the database: of tasks that are not completed, only a cancelled one can cost, and only so. */
const task = `
alter table "task"
  add column "is_cancel_billed" boolean not null default false,
  drop constraint "task_cost_check",
  add constraint "task_cost_check" check (cost >= 0 and (cost = 0 or state = 'completed' or state = 'cancelled' and is_cancel_billed))`;

/** Adds it. */
export class TaskTerms0020 extends Migration {
  override up(): void {
    this.addSql(task);
  }
}
