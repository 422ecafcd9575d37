/** Stores the owners of vendors' objects, and the last reports of native jobs. */
import type { Pool, PoolClient } from "pg";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import type { RowOf } from "../db/row.ts";
import type { TaskUnits } from "../provider/task.ts";
import type { NativeJobEntity } from "./entity.ts";
import { firstCredential, type NativeExchange } from "./mount.ts";

/** A stored job, with data of its task. */
export type NativeJob = RowOf<
  typeof NativeJobEntity,
  | "task_id"
  | "account_id"
  | "vendor"
  | "word"
  | "vendor_id"
  | "callback_id"
  | "wants_progress"
  | "status"
  | "body"
> & {
  /** The age of the report in milliseconds; null if there is none. */
  readonly age_ms: number | null;
  /** The token of its task. */
  readonly attempt_token: string | null;
  /** The vendor's name of its model. */
  readonly vendor_model: string | null;
  /** The requested units. */
  readonly asked: TaskUnits | null;
  /** The name of the credential that submitted it; empty for the vendor's only or first one. */
  readonly credential: string;
};

/** A job that is about to be submitted. */
type NewNativeJob = Pick<
  NativeJob,
  "task_id" | "account_id" | "vendor" | "word" | "callback_id" | "wants_progress"
>;

/** A vendor's report of a job. */
export interface SavedAnswer {
  readonly status: string;
  readonly body: Buffer | null;
}

type Database = Pick<Pool | PoolClient, "query">;

const columns = `job.task_id, job.account_id, job.vendor, job.word, job.vendor_id, job.callback_id,
  job.wants_progress, job.status, job.body, task.attempt_token, task.vendor_model, task.params as asked,
  floor(extract(epoch from clock_timestamp() - job.refresh_time) * 1000)::float8 as age_ms,
  coalesce((select object.credential from native_object object where object.vendor = job.vendor
    and object.name = job.word || '/' || job.vendor_id), '') as credential`;
const from = "from native_job job left join task on task.id = job.task_id";

const sql = {
  claim: `insert into native_object (vendor, name, account_id, credential)
    select $1, unnest($2::text[]), $3, $4 on conflict (vendor, name) do nothing`,
  owned: `select name, credential, coalesce(tokens, 0) as tokens from native_object
    where vendor = $1 and name = any($2) and account_id = $3 and (expire_time is null or expire_time > now())`,
  remove: `delete from native_object where vendor = $1 and name = $2 and account_id = $3`,
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
  newer: `select * from (select ${columns} ${from} where job.account_id = $1 and job.vendor = $2 and job.word = $3
    and job.vendor_id is not null and job.task_id > $4
    order by job.task_id limit $5) newer order by task_id desc`,
} as const;

/** Owner of an object. */
export interface ObjectOwner {
  readonly vendor: string;
  readonly accountId: string;
  /** The name of the vendor's credential that created it; empty for the only or first one. */
  readonly credential: string;
}

/** Records the owner of objects. The first owner stays. */
export async function claimObjects(
  database: Database,
  { vendor, accountId, credential }: ObjectOwner,
  names: readonly string[],
): Promise<void> {
  if (names.length > 0) await database.query(sql.claim, [vendor, names, accountId, credential]);
}

/** Forgets the owner of an object that no longer exists. */
export async function removeObject(
  database: Database,
  { vendor, accountId }: Omit<ObjectOwner, "credential">,
  name: string,
): Promise<void> {
  await mapDatabaseLoss(database.query(sql.remove, [vendor, name, accountId]));
}

/** Objects that one account owns. */
interface OwnedObjects {
  /** The name of their credential; empty for the vendor's only or first one. */
  readonly credential: string;
  /** The number of tokens stored by those objects that are prompt caches. */
  readonly tokens: number;
}

/** An owned object. */
interface OwnedObject extends OwnedObjects {
  readonly name: string;
}

/** Finds objects, if the account owns all of them; otherwise undefined. */
async function findOwned(
  database: Database,
  { vendor, accountId }: Omit<ObjectOwner, "credential">,
  names: readonly string[],
): Promise<readonly OwnedObject[] | undefined> {
  const asked = [...new Set(names)];
  if (asked.length === 0) return [];
  const { rows } = await mapDatabaseLoss(
    database.query<OwnedObject>(sql.owned, [vendor, asked, accountId]),
  );
  return rows.length === asked.length ? rows : undefined;
}

/** Inserts a job that is about to be submitted. */
export async function insertJob(database: Database, job: NewNativeJob): Promise<void> {
  const { task_id: taskId, account_id: accountId, vendor, word } = job;
  const values = [taskId, accountId, vendor, word, job.callback_id, job.wants_progress];
  await database.query(sql.insert, values);
}

/** Records the vendor's id and first report. */
export async function acceptJob(
  database: Database,
  taskId: string,
  { vendorId, status, body }: SavedAnswer & { readonly vendorId: string },
): Promise<void> {
  await database.query(sql.name, [taskId, vendorId, status, body]);
}

/** Records a report. */
export async function saveAnswer(
  database: Database,
  taskId: string,
  { status, body }: SavedAnswer,
): Promise<void> {
  await mapDatabaseLoss(database.query(sql.say, [taskId, status, body]));
}

/** Marks the report as outdated: the vendor changed the job without reporting its state. */
export async function markJobStale(
  database: Database,
  taskId: string,
  status: string,
): Promise<void> {
  await mapDatabaseLoss(database.query(sql.touch, [taskId, status]));
}

/** Finds a job of any account by the vendor's id. */
export async function findJob(
  database: Database,
  vendor: string,
  vendorId: string,
): Promise<NativeJob | undefined> {
  return (await mapDatabaseLoss(database.query<NativeJob>(sql.find, [vendor, vendorId]))).rows[0];
}

/** The native job of a task; undefined if it is none. */
export async function jobOfTask(
  database: Database,
  taskId: string,
): Promise<NativeJob | undefined> {
  return (await database.query<NativeJob>(sql.ofTask, [taskId])).rows[0];
}

/**
 * Jobs of an account, newest first.
 *
 * @param after the task of the last job of the previous page; undefined for the first page
 */
export async function listJobs(
  database: Database,
  page: {
    readonly accountId: string;
    readonly vendor: string;
    readonly word: string;
    /** Only jobs older than this one. */
    readonly after?: string;
    /** Only jobs newer than this one: the oldest of them. */
    readonly before?: string;
    readonly limit: number;
  },
): Promise<readonly NativeJob[]> {
  const { accountId, vendor, word, after, before, limit } = page;
  const values = [accountId, vendor, word, before ?? after ?? null, limit];
  const text = before === undefined ? sql.list : sql.newer;
  return (await mapDatabaseLoss(database.query<NativeJob>(text, values))).rows;
}

/** 404 for an unknown object and for one of another account: always the same (R-VND-3). */
export function noSuchObject(): GatewayError {
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    "There is no such object: only the account that created an object through this gateway can use it",
  );
}

/**
 * Checks that the caller owns objects, and that one credential can use all of them, before the
 * vendor is called (R-VND-3).
 *
 * @throws GatewayError NOT_FOUND, INVALID_REQUEST
 */
export async function checkOwned(
  { mount, caller }: Pick<NativeExchange, "mount" | "caller">,
  { pool }: { readonly pool: Pool },
  names: readonly string[],
): Promise<OwnedObjects> {
  const owner = { vendor: mount.config.name, accountId: caller.accountId };
  const owned = await findOwned(pool, owner, names);
  if (owned === undefined) throw noSuchObject();
  const first = firstCredential(mount);
  const together = Map.groupBy(owned, ({ credential }) => credential || first);
  if (together.size > 1) throw apart([...together.values()]);
  const tokens = owned.reduce((sum, each) => sum + each.tokens, 0);
  return { credential: owned[0]?.credential ?? "", tokens };
}

/**
 * 400 for objects of several credentials: at the vendor, each credential has access to its objects
 * only.
 */
function apart(groups: readonly (readonly OwnedObject[])[]): GatewayError {
  const listed = groups.map((group) => group.map(({ name }) => `"${name}"`).join(" and "));
  return invalid(
    undefined,
    `These objects cannot be used in one request, because the vendor stores them separately: ${listed.join("; ")}. ` +
      "Use them in separate requests, or create one again in a request that names the other",
  );
}

/** The names of the objects that a request refers to. */
export function referencesOf({
  mount,
  request,
}: Pick<NativeExchange, "mount" | "request">): readonly string[] {
  return mount.api.references?.(request, mount.config) ?? [];
}

/**
 * Checks that the caller owns all objects to which a request refers; undefined if it refers to
 * none.
 *
 * @throws GatewayError NOT_FOUND, INVALID_REQUEST
 */
export async function checkReferences(
  exchange: NativeExchange,
  context: { readonly pool: Pool },
): Promise<OwnedObjects | undefined> {
  const names = referencesOf(exchange);
  return names.length === 0 ? undefined : await checkOwned(exchange, context, names);
}
