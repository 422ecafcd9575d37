/** Claims tasks for this process: queued ones, in turns of their accounts, and due ones. */
import type { Pool, PoolClient } from "pg";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { isDatabaseLost } from "../../core/database-lost.ts";
import type { VendorTasks } from "../../provider/task.ts";
import type { RowOf } from "../../db/row.ts";
import type { TaskEntity } from "../entity.ts";
import { statesBefore } from "../state.ts";
import { textUnits } from "../schema/forms.ts";
import { workColumns, type TaskRow } from "../task-row.ts";
import { inTransaction } from "../transition.ts";
import type { WorkerOptions, WorkerVendor } from "./worker-options.ts";

/** A vendor that can run a task of a model. */
export interface TaskRoute {
  /** A vendor's name. */
  readonly vendor: string;
  /** The vendor's name of the model. */
  readonly model: string;
}

/** Options of {@link claimQueued}. */
interface QueuedClaimOptions {
  /** By model key: only tasks of these models are claimed. */
  readonly routes: ReadonlyMap<string, readonly TaskRoute[]>;
  /** Chooses among routes that can run a task of a model. */
  readonly choose: (model: string, usable: readonly TaskRoute[]) => TaskRoute | undefined;
  /** Maximum number of concurrent tasks at a vendor; undefined for no limit. */
  readonly vendorMax: (vendor: string) => number | undefined;
  /** The most tasks of an account that run at once. */
  readonly accountMax: number;
  /** The most tasks to claim. */
  readonly limit: number;
  readonly leaseMs: number;
  /** Maximum running time of a task of a model, from its first claim. */
  readonly runMs: (model: string) => number;
  /** The account that was served last: among equals, the accounts after it come first. */
  readonly after: string;
  /** Called just before the claim is committed. */
  readonly onCommit: () => void;
}

/** The claimed tasks. */
interface QueuedClaim {
  readonly tasks: readonly TaskRow[];
  /** The account that was served last. */
  readonly after: string;
}

/**
 * The connection broke during the commit of a claim: it may have taken place. The cause is the
 * driver's error.
 */
export class ClaimUnanswered extends Error {
  // Private, because logs show the members of errors, and tasks contain prompts.
  readonly #tasks: readonly TaskRow[];

  constructor(tasks: readonly TaskRow[], cause: unknown) {
    super("the database did not confirm a claim of tasks", { cause });
    this.#tasks = tasks;
  }

  /** The tasks that may be claimed. */
  get tasks(): readonly TaskRow[] {
    return this.#tasks;
  }
}

/**
 * The advisory lock under which processes claim queued tasks one after the other, so that limits
 * are exact: any fixed number.
 */
const lockKey = 7_205_119_431;

const atVendor = "state in ('submitting', 'submit_unknown', 'running')";
const active = "state in ('submitting', 'submit_unknown', 'running', 'finalizing')";

/** Due, and without a lease: a cancel request also moves the time of a leased task. */
const isDue = `${active} and next_time <= clock_timestamp()
  and (lease_until is null or lease_until <= clock_timestamp())`;

const isLateChargeDue = `is_late_charge_pending and next_time <= clock_timestamp()
  and (lease_until is null or lease_until <= clock_timestamp())`;

const loadSql = `select vendor, count(*)::int as count from task where ${atVendor} group by vendor`;

/**
 * $1: models, $2: maximum per account, $3: number, $4: the account that was served last. Accounts
 * with fewer running tasks come first. A loose index scan visits each account once, however many
 * tasks it has queued.
 */
const waitingSql = `
  with recursive waiting as (
    (select account_id from task where state = 'queued' order by account_id limit 1)
    union all
    select next.account_id from waiting cross join lateral (
      select account_id from task where state = 'queued' and account_id > waiting.account_id
      order by account_id limit 1) next
  ), running as (
    select account_id, count(*)::int as count from task where ${active} group by account_id
  )
  select task.id, task.account_id, task.model
  from waiting left join running using (account_id) cross join lateral (
    select id, account_id, model, coalesce(running.count, 0) + row_number() over (order by id) as turn
    from (select id, account_id, model from task
      where state = 'queued' and account_id = waiting.account_id and next_time <= now() and model = any($1)
      order by id limit least($3, greatest(0, $2 - coalesce(running.count, 0)))) first) task
  order by task.turn, task.account_id <= $4, task.account_id
  limit $3`;

/**
 * Makes the intent to submit durable before the vendor is called. The deadline counts from the
 * first claim. $1: ids, $2: vendors, $3: models, $4: the lease, $5: maximum running time of each.
 */
const claimSql = `
  update task set state = 'submitting', fence = task.fence + 1,
    lease_until = clock_timestamp() + $4 * interval '1 ms', next_time = clock_timestamp() + $4 * interval '1 ms',
    attempt_token = coalesce(task.attempt_token, gen_random_uuid()), attempt_time = clock_timestamp(),
    start_time = coalesce(task.start_time, clock_timestamp()),
    deadline = case when task.start_time is null then clock_timestamp() + picked.run_ms * interval '1 ms' else task.deadline end,
    vendor = picked.vendor, vendor_model = picked.model, credential = ''
  from unnest($1::uuid[], $2::text[], $3::text[], $5::float8[]) as picked(id, vendor, model, run_ms)
  where task.id = picked.id and task.state = 'queued'
  returning ${workColumns}`;

/**
 * `next_time` moves with the lease, so that the index does not find leased tasks. $1: number, $2:
 * the lease.
 */
const dueSql = `
  update task set fence = task.fence + 1, lease_until = clock_timestamp() + $2 * interval '1 ms',
    next_time = clock_timestamp() + $2 * interval '1 ms'
  where id in (
    select id from task where ${isDue} order by next_time limit $1 for update skip locked)
  returning ${workColumns}`;

/** Ended tasks whose vendors may still charge for them. $1: number, $2: the lease. */
const claimLateChargesSql = `
  update task set fence = task.fence + 1, lease_until = clock_timestamp() + $2 * interval '1 ms',
    next_time = clock_timestamp() + $2 * interval '1 ms'
  where id in (
    select id from task where ${isLateChargeDue} order by next_time limit $1 for update skip locked)
  returning ${workColumns}`;

/** Tasks that were queued until their deadline. They need no lease. $1: number. */
const overdueSql = `
  update task set fence = task.fence + 1
  where id in (
    select id from task where state = 'queued' and deadline <= clock_timestamp()
    limit $1 for update skip locked)
  returning ${workColumns}`;

const anythingSql = `select
  exists (select from task where state = 'queued' and next_time <= now()) as queued,
  exists (select from task where ${isDue}) as due,
  exists (select from task where ${isLateChargeDue}) as late_charges`;

type WaitingRow = RowOf<typeof TaskEntity, "id" | "account_id" | "model">;

/** The kinds of pending work. */
interface PendingWork {
  readonly queued: boolean;
  readonly due: boolean;
  /** Ended tasks whose vendors may still charge for them. */
  readonly late_charges: boolean;
}

/** Finds out which kinds of work are pending. Cheap. */
export async function findWork(pool: Pool): Promise<PendingWork> {
  const { rows } = await pool.query<PendingWork>(anythingSql);
  return rows[0] ?? { queued: false, due: false, late_charges: false };
}

/**
 * Claims queued tasks within the limits of accounts and vendors: they are then `submitting`.
 *
 * @throws ClaimUnanswered if the outcome is unknown
 * @throws the driver's error; nothing was claimed
 */
export async function claimQueued(pool: Pool, options: QueuedClaimOptions): Promise<QueuedClaim> {
  let claimed: readonly TaskRow[] = [];
  try {
    return await inTransaction(pool, async (client) => {
      const claim = await claimIn(client, options);
      claimed = claim.tasks;
      if (claimed.length > 0) options.onCommit();
      return claim;
    });
  } catch (error) {
    if (claimed.length > 0 && isDatabaseLost(error)) throw new ClaimUnanswered(claimed, error);
    throw error;
  }
}

async function claimIn(client: PoolClient, options: QueuedClaimOptions): Promise<QueuedClaim> {
  const { accountMax, limit, leaseMs, runMs, after } = options;
  await client.query("select pg_advisory_xact_lock($1)", [lockKey]);
  const load = await client.query<{ vendor: string; count: number }>(loadSql);
  const capacity = new VendorCapacity(
    options,
    new Map(load.rows.map((row) => [row.vendor, row.count])),
  );
  const values = [capacity.openModels(), accountMax, limit, after];
  const waiting = await client.query<WaitingRow>(waitingSql, values);
  const chosen = waiting.rows.flatMap((row) => {
    const route = capacity.take(row.model);
    return route === undefined ? [] : [{ ...row, route }];
  });
  if (chosen.length === 0) return { tasks: [], after };
  const { rows } = await client.query<TaskRow>(claimSql, [
    chosen.map(({ id }) => id),
    chosen.map(({ route }) => route.vendor),
    chosen.map(({ route }) => route.model),
    leaseMs,
    chosen.map(({ model }) => runMs(model)),
  ]);
  return { tasks: rows, after: chosen.at(-1)?.account_id ?? after };
}

/** $1: id, $2: its attempt, $3: states. */
const unsentSql = `
  update task set state = 'queued', fence = fence + 1, lease_until = null, next_time = clock_timestamp(),
    vendor = '', vendor_model = '', credential = ''
  where id = $1 and deadline - attempt_time = $2::interval and state = any($3)`;

/**
 * Queues a task again whose vendor was not called, unless it has been submitted since. If the
 * commit of a claim is in progress, this waits for the lock of that claim: its outcome is known
 * only after the commit.
 *
 * @returns whether it is queued again
 */
export function requeueUnsent(
  pool: Pool,
  { id, attempt }: Pick<TaskRow, "id" | "attempt">,
): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    await client.query("select pg_advisory_xact_lock($1)", [lockKey]);
    const { rowCount } = await client.query(unsentSql, [id, attempt, statesBefore("requeue")]);
    return rowCount === 1;
  });
}

/** Claims due tasks: their time has been reached, or their lease has expired. */
export async function claimDue(pool: Pool, limit: number, leaseMs: number): Promise<TaskRow[]> {
  return (await pool.query<TaskRow>(dueSql, [limit, leaseMs])).rows;
}

/** Claims ended tasks whose vendors may still charge for them. */
export async function claimLateCharges(
  pool: Pool,
  limit: number,
  leaseMs: number,
): Promise<TaskRow[]> {
  return (await pool.query<TaskRow>(claimLateChargesSql, [limit, leaseMs])).rows;
}

/** Claims tasks that were queued until their deadline. */
export async function claimOverdue(pool: Pool, limit: number): Promise<TaskRow[]> {
  return (await pool.query<TaskRow>(overdueSql, [limit])).rows;
}

/** Remaining capacity of each vendor. */
class VendorCapacity {
  readonly #options: QueuedClaimOptions;
  readonly #load: Map<string, number>;

  constructor(options: QueuedClaimOptions, load: Map<string, number>) {
    this.#options = options;
    this.#load = load;
  }

  /**
   * Models with a vendor that has capacity: a full vendor must not block tasks of other vendors in
   * the queue.
   */
  openModels(): string[] {
    const models = [...this.#options.routes];
    return models.filter(([, routes]) => routes.some((route) => this.#has(route))).map(([m]) => m);
  }

  take(model: string): TaskRoute | undefined {
    const { routes, choose } = this.#options;
    const usable = routes.get(model)?.filter((each) => this.#has(each)) ?? [];
    const route = choose(model, usable);
    if (route !== undefined) this.#load.set(route.vendor, this.#count(route) + 1);
    return route;
  }

  #has(route: TaskRoute): boolean {
    return this.#count(route) < (this.#options.vendorMax(route.vendor) ?? Infinity);
  }

  #count({ vendor }: TaskRoute): number {
    return this.#load.get(vendor) ?? 0;
  }
}

/** The columns of a task that decide which vendor runs it. */
export type TaskVendorRef = Pick<
  TaskRow,
  "type" | "model" | "vendor" | "vendor_model" | "credential" | "path"
>;

/**
 * The vendor that runs a task: its task interface, or for a TEXT task its text generation.
 * Undefined if it is not configured in this process.
 */
export function vendorFor(
  options: Pick<WorkerOptions, "vendors" | "natives" | "config" | "text">,
  { type, model: key, vendor, vendor_model: name, credential, path }: TaskVendorRef,
): WorkerVendor | undefined {
  if (path !== null) return options.natives?.get(vendor);
  if (type !== ModelType.TEXT) return options.vendors.get(vendorKey(vendor, credential));
  const known = options.text?.vendors.get(vendor);
  const model = options.config.models.get(key);
  const route = model?.routes.find((each) => each.vendor === vendor && each.model === name);
  const { run } = options.text ?? {};
  if (!known || !run || !model || !route) return undefined;
  const tasks: VendorTasks = {
    // Text vendors have neither idempotent submits nor a way to find one: a lost answer cannot be
    // recovered.
    resubmit: "blind",
    types: textTypes,
    canCancel: true,
    submit: ({ params, signal, lastSignal }) => run({ model, route, params, signal, lastSignal }),
    units: textUnits,
  };
  return { tasks, maxInFlight: known.maxInFlight, baseUrl: "" };
}

/**
 * The key of a vendor with one of its credentials.
 *
 * @param credential empty for its only or first one
 */
export function vendorKey(vendor: string, credential: string): string {
  return credential === "" ? vendor : `${vendor}#${credential}`;
}

const textTypes: ReadonlySet<ModelType> = new Set([ModelType.TEXT]);
