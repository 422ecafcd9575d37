/**
 * Erases the personal data of an account: it is deleted, or replaced where a row must stay. Ledger
 * entries, amounts, usage and the facts of call records stay, under an account without a name.
 */
import type { EntityManager } from "@mikro-orm/postgresql";
import { ErrorCode, GatewayError } from "../core/errors.ts";

/** Work that still needs the data, or will write more. */
const unfinishedSql = `select
  (select count(*) from open_hold where account_id = :id)::int as calls,
  (select count(*) from task where account_id = :id
    and (finish_time is null or is_late_charge_pending))::int as tasks`;

/**
 * The statements, in this order: a row goes before the one by which it is found, except for events
 * of tasks, which a trigger protects as long as their task exists.
 */
const statements: readonly string[] = [
  // The caller has locked the account, so no other erasure of it runs.
  "create temporary table erased_task on commit drop as select id from task where account_id = :id",
  "delete from task where account_id = :id",
  "delete from task_event where task_id in (select id from erased_task)",
  "delete from native_job where account_id = :id",
  "delete from native_object where account_id = :id",
  "delete from stored_response where account_id = :id",
  "delete from response_event where account_id = :id",
  "delete from kept_reasoning where account_id = :id",
  "delete from idempotent_call where account_id = :id",
  "delete from call_watch where account_id = :id",
  `delete from webhook_attempt where delivery_id in
    (select id from webhook_delivery where account_id = :id)`,
  "delete from webhook_delivery where account_id = :id",
  "delete from webhook_event where account_id = :id",
  "delete from webhook_endpoint where account_id = :id",
  "delete from webhook_secret where account_id = :id",
  "delete from alert where account_id = :id",
  // A job deletes the files of expired results.
  "update result_file set expire_time = now() where account_id = :id and expire_time > now()",
  // Users, and all by which they sign in.
  `delete from one_time_code where account_id = :id
    or phone in (select phone from console_user where account_id = :id)`,
  "delete from code_guess where subject in (select phone from console_user where account_id = :id)",
  `delete from console_session where user_id in
    (select id from console_user where account_id = :id)`,
  "delete from sign_in_link where user_id in (select id from console_user where account_id = :id)",
  "delete from console_user where account_id = :id",
  // Rows that stay. Customers choose request ids, and paths of native APIs name their files.
  // A key becomes unknown, so that a program that still uses it adds no call records.
  `update api_key set name = '', masked = '', state = 3, digest = sha256(convert_to(id::text, 'utf8'))
    where account_id = :id and (name <> '' or masked <> '' or state <> 3)`,
  `update call set request_id = id::text, upstream_request_id = '', path = ''
    where account_id = :id and (request_id <> id::text or upstream_request_id <> '' or path <> '')`,
  "update booking set reason = 'erased' where account_id = :id and reason is not null",
  "update redeem_code set note = '' where account_id = :id",
  // Entries about money have no names.
  "set local uas.erasure = 'audit_entry'",
  `update audit_entry set reason = '',
      before = case when action !~ '^(account|key|user|session|webhook)[.]' then before end,
      after = case when action !~ '^(account|key|user|session|webhook)[.]' then after end
    where account_id = :id`,
  "set local uas.erasure = ''",
];

/**
 * Erases the data that other tables than `account` have of an account.
 *
 * @param em in a transaction that has locked the row of the account
 * @throws GatewayError CONFLICT while calls or tasks of the account run
 */
export async function eraseAccountData(em: EntityManager, id: string): Promise<void> {
  const [unfinished] = await em.execute<{ calls: number; tasks: number }[]>(
    ...withId(unfinishedSql, id),
  );
  const { calls = 0, tasks = 0 } = unfinished ?? {};
  if (calls + tasks > 0) throw stillRunning(calls, tasks);
  for (const statement of statements) await em.execute(...withId(statement, id));
}

/** The account's id as parameters. */
function withId(statement: string, id: string): [string, string[]] {
  const parts = statement.split(":id");
  return [parts.join("?"), parts.slice(1).map(() => id)];
}

function stillRunning(calls: number, tasks: number): GatewayError {
  const text = `the account still has ${calls} running calls and ${tasks} unfinished tasks: wait until they have ended, or cancel the tasks, then erase it again`;
  return new GatewayError(ErrorCode.CONFLICT, text);
}
