/** Whose objects are, and what vendors said of jobs last. */
import type { Pool, PoolClient } from "pg";
import { answering } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { TaskUnits } from "../vendor/task.ts";
import type { NativeAsk, NativeContext } from "./context.ts";

/** A job as it is kept. */
export interface NativeJob {
  readonly task_id: string;
  readonly account_id: string;
  readonly vendor: string;
  readonly word: string;
  /** What the vendor calls it; null until it has answered. */
  readonly vendor_id: string | null;
  readonly callback_id: string | null;
  readonly wants_progress: boolean;
  /** The vendor's word. */
  readonly status: string;
  /** What the vendor said last; null: too long to keep. */
  readonly body: Buffer | null;
  /** Since it said so, in milliseconds; null: it never has. */
  readonly age_ms: number | null;
  /** What workers find its task by. */
  readonly attempt_token: string | null;
  /** The vendor's name of its model. */
  readonly vendor_model: string | null;
  /** What it can be charged for. */
  readonly asked: TaskUnits | null;
}

/** A job that is about to be submitted. */
type NewNativeJob = Pick<
  NativeJob,
  "task_id" | "account_id" | "vendor" | "word" | "callback_id" | "wants_progress"
>;

/** What a vendor said of a job. */
export interface Said {
  readonly status: string;
  readonly body: Buffer | null;
}

type Database = Pick<Pool | PoolClient, "query">;

const columns = `job.task_id, job.account_id, job.vendor, job.word, job.vendor_id, job.callback_id,
  job.wants_progress, job.status, job.body, task.attempt_token, task.vendor_model, task.params as asked,
  floor(extract(epoch from clock_timestamp() - job.refresh_time) * 1000)::float8 as age_ms`;
const from = "from native_job job left join task on task.id = job.task_id";

const sql = {
  claim: `insert into native_object (vendor, name, account_id)
    select $1, unnest($2::text[]), $3 on conflict (vendor, name) do nothing`,
  owned: `select name from native_object where vendor = $1 and name = any($2) and account_id = $3`,
  insert: `insert into native_job (task_id, account_id, vendor, word, callback_id, wants_progress)
    values ($1, $2, $3, $4, $5, $6)`,
  name: `update native_job set vendor_id = $2, status = $3, body = $4, refresh_time = clock_timestamp()
    where task_id = $1`,
  say: `update native_job set status = $2, body = $3, refresh_time = clock_timestamp() where task_id = $1`,
  touch: `update native_job set status = $2, refresh_time = null where task_id = $1`,
  find: `select ${columns} ${from} where job.vendor = $1 and job.vendor_id = $2`,
  ofTask: `select ${columns} ${from} where job.task_id = $1`,
  list: `select ${columns} ${from} where job.account_id = $1 and job.vendor = $2 and job.word = $3
    and job.vendor_id is not null and ($4::uuid is null or job.task_id < $4)
    order by job.task_id desc limit $5`,
} as const;

/** Remembers whose objects are. What somebody has stays his. */
export async function claimObjects(
  database: Database,
  { vendor, accountId }: { readonly vendor: string; readonly accountId: string },
  names: readonly string[],
): Promise<void> {
  if (names.length > 0) await database.query(sql.claim, [vendor, names, accountId]);
}

/** Whether all of them are the account's. */
async function ownsObjects(
  database: Database,
  { vendor, accountId }: { readonly vendor: string; readonly accountId: string },
  names: readonly string[],
): Promise<boolean> {
  const asked = [...new Set(names)];
  if (asked.length === 0) return true;
  const { rows } = await answering(database.query(sql.owned, [vendor, asked, accountId]));
  return rows.length === asked.length;
}

/** A job is about to be submitted. */
export async function insertJob(database: Database, job: NewNativeJob): Promise<void> {
  const { task_id: taskId, account_id: accountId, vendor, word } = job;
  const values = [taskId, accountId, vendor, word, job.callback_id, job.wants_progress];
  await database.query(sql.insert, values);
}

/** The vendor has it. */
export async function nameJob(
  database: Database,
  taskId: string,
  { vendorId, status, body }: Said & { readonly vendorId: string },
): Promise<void> {
  await database.query(sql.name, [taskId, vendorId, status, body]);
}

/** The vendor said how it stands. */
export async function sayJob(
  database: Database,
  taskId: string,
  { status, body }: Said,
): Promise<void> {
  await answering(database.query(sql.say, [taskId, status, body]));
}

/** The vendor has done something about it, but did not say how it stands now: it is to be asked. */
export async function touchJob(database: Database, taskId: string, status: string): Promise<void> {
  await answering(database.query(sql.touch, [taskId, status]));
}

/** A job by what the vendor calls it, whosever it is. */
export async function findJob(
  database: Database,
  vendor: string,
  vendorId: string,
): Promise<NativeJob | undefined> {
  return (await answering(database.query<NativeJob>(sql.find, [vendor, vendorId]))).rows[0];
}

/** The job that a task is. */
export async function jobOfTask(
  database: Database,
  taskId: string,
): Promise<NativeJob | undefined> {
  return (await database.query<NativeJob>(sql.ofTask, [taskId])).rows[0];
}

/** Jobs of an account, newest first. @param after the task of the last one before; `undefined`: from the newest */
export async function listJobs(
  database: Database,
  page: {
    readonly accountId: string;
    readonly vendor: string;
    readonly word: string;
    readonly after: string | undefined;
    readonly limit: number;
  },
): Promise<readonly NativeJob[]> {
  const { accountId, vendor, word, after, limit } = page;
  const values = [accountId, vendor, word, after ?? null, limit];
  return (await answering(database.query<NativeJob>(sql.list, values))).rows;
}

/* Whether what a request is about is the caller's: asked before the vendor is (R-VND-3). */

/** What is said of an object that there is not, and of one of somebody else: always the same. */
export function noSuchObject(): GatewayError {
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    "There is no such object: ids are found by the account that made them, through this gateway",
  );
}

/** @throws GatewayError NOT_FOUND */
export async function checkOwned(
  { at, caller }: Pick<NativeAsk, "at" | "caller">,
  { pool }: Pick<NativeContext, "pool">,
  names: readonly string[],
): Promise<void> {
  const owner = { vendor: at.config.name, accountId: caller.accountId };
  if (!(await ownsObjects(pool, owner, names))) throw noSuchObject();
}

/** The names of the objects that a request refers to. */
export function referencesOf({
  at,
  request,
}: Pick<NativeAsk, "at" | "request">): readonly string[] {
  return at.api.references?.(request) ?? [];
}

/** What a request refers to must be the caller's. @throws GatewayError NOT_FOUND */
export async function checkReferences(
  ask: NativeAsk,
  context: Pick<NativeContext, "pool">,
): Promise<void> {
  const names = referencesOf(ask);
  if (names.length > 0) await checkOwned(ask, context, names);
}
