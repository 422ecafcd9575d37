/** What vendors tell of tasks by themselves, and what they take for tasks that have ended without a charge. */
import { Migration } from "@mikro-orm/migrations";
import { planSettings } from "./0005-money-apply.ts";

/**
 * hints: how often somebody told that there is news at the vendor. hint_task_id: what its vendor is said to call
 * the task; is_hint_sure: the vendor has said so itself, in an answer to us. is_trailing: it has ended, but its
 * vendor may still be at work and charge for it.
 */
const task = `
alter table "task"
  add column "hints" int not null default 0,
  add column "hint_task_id" text null,
  add column "is_hint_sure" boolean not null default false,
  add column "is_trailing" boolean not null default false;
create index "task_attempt_token_index" on "task" ("attempt_token") where (attempt_token is not null);
create index "task_trailing_index" on "task" ("next_time") where (is_trailing)`;

/**
 * Books what a vendor took for a call that was over already, once: its customer pays nothing for it. Verdicts:
 * booked; replayed (a vendor's cost of it is in the books); unknown (there is no such hold, or it is open: its
 * settlement will tell). Locks the account's row first, as all who move money.
 */
const vendorLate = `
create function ledger_vendor_late(p_account uuid, p_call uuid, p_cost bigint, out verdict text)
language plpgsql ${planSettings} as $$
declare
  v_txn uuid := ledger_uuid();
begin
  perform from balance b where b.account_id = p_account for update;
  perform from hold h where h.id = p_call and h.account_id = p_account and h.state in (2, 3);
  if not found then
    verdict := 'unknown';
    return;
  end if;
  if exists (select from ledger_entry e where e.txn_id = p_call and e.account = 8)
    or exists (select from ledger_entry e where e.call_id = p_call and e.account = 8) then
    verdict := 'replayed';
    return;
  end if;
  insert into ledger_entry (txn_id, account, account_id, kind, amount, call_id)
    values (v_txn, 7, p_account, 6, -p_cost, p_call), (v_txn, 8, p_account, 6, p_cost, p_call);
  update call c set vendor_cost = p_cost where c.id = p_call;
  verdict := 'booked';
end $$`;

/** Adds it. */
export class TaskHint0013 extends Migration {
  override up(): void {
    for (const statement of [task, vendorLate]) this.addSql(statement);
  }
}
