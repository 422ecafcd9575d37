/**
 * Accepts tasks: the row and the money in one transaction. The hold of a task is the only one there is for
 * it: whoever runs it, a text generation too, holds nothing again, and its end settles this hold (R-TSK-6).
 */
import type { Pool, PoolClient } from "pg";
import { applyIn } from "../billing/apply-in.ts";
import type { KeyCaller } from "../caller.ts";
import type { ModelConfig, PriceConfig } from "../config/config.ts";
import { queuedTasksMax, taskHoldTtlMs, taskQueueMs } from "../config/task-limits.ts";
import { answering } from "../database-lost.ts";
import { openPool } from "../db/open-pool.ts";
import type { TaskUnits } from "../vendor/task.ts";
import { isCancelBilled } from "./charge.ts";
import { callbackIdReused, holdRefused, queueFull } from "./failures.ts";
import { inTransaction } from "./move.ts";
import type { SeenTask } from "./store.ts";
import type { ReadSubmit } from "./submit-form.ts";
import { seenColumns } from "./task-row.ts";
import { newId } from "../uuid.ts";

/** Prices, as billing keeps them. */
export interface TaskPricing {
  /** The price that counts at this moment, in milliseconds since 1970. */
  priceAt(model: ModelConfig, timeMs: number): PriceConfig;
  /** The version of a price. */
  version(price: PriceConfig): string;
  /** The most that a task can cost, in nano-USD, rounded up. */
  holdUnits(price: PriceConfig, units: TaskUnits, discountBp: number): bigint;
}

/** What {@link createSubmit} needs. */
export interface SubmitOptions {
  /** See {@link openSubmitPool}. */
  readonly pool: Pool;
  readonly pricing: TaskPricing;
  /** Called after a commit. Default: nothing. */
  readonly onAccepted?: ((task: SeenTask) => void) | undefined;
  /** Called at the points where a process can die. Default: nothing. */
  readonly at?: ((point: SubmitPoint) => void) | undefined;
}

/** Where a process can die: on the way to the database, before the commit and after it. */
export type SubmitPoint = `submit.${"sent" | "held" | "committed"}`;

/** Who submits. */
export interface Submitter {
  readonly caller: KeyCaller;
  readonly requestId: string;
}

/** What came of a submit. */
export interface Submitted {
  readonly task: SeenTask;
  /** It had been accepted before; nothing changed. */
  readonly replayed: boolean;
}

/** Accepts a task. @throws GatewayError */
export type Submit = (
  read: SubmitRead,
  submitter: Submitter,
  own?: OwnSubmit,
) => Promise<Submitted>;

/** What of a submit is needed here. */
export type SubmitRead = Omit<ReadSubmit, "taskModel"> & {
  readonly taskModel: Pick<ReadSubmit["taskModel"], "model" | "units">;
};

/** What whoever submits has of its own. */
export interface OwnSubmit {
  /** The task's id, a UUIDv7. Default: a new one. */
  readonly id?: string;
  /** Writes what belongs to the task, in the transaction that accepts it. Default: nothing. */
  readonly within?: (transaction: PoolClient) => Promise<void>;
}

const sql = {
  // The queue is counted no further than its end. Waits for another submit with the same callback id.
  insert: `
    insert into task (id, account_id, key_id, model, type, params, fingerprint, callback_id, callback_url,
      request_id, deadline, hold, price_version, discount_bp, is_cancel_billed)
    select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + $11 * interval '1 ms', $12, $13, $14, $15
    where (select count(*) from
      (select from task where account_id = $2 and state = 'queued' limit ${queuedTasksMax}) as waiting
    ) < ${queuedTasksMax}
    on conflict (account_id, callback_id) do nothing
    returning ${seenColumns}`,
  find: `select ${seenColumns}, fingerprint from task where account_id = $1 and callback_id = $2`,
} as const;

/** How many connections submits may open. */
const poolMax = 8;

/**
 * Opens the connections of submits: of their own, so that a burst of them keeps nobody else waiting, and with
 * statements that go out together. A submit asks the database twice instead of four times.
 */
export function openSubmitPool(url: string): Pool {
  return openPool(url, { max: poolMax, for: "callers", isPipelined: true });
}

/** Makes it. */
export function createSubmit(options: SubmitOptions): Submit {
  const { pool, at = ignore } = options;
  return async (read, submitter, own = {}) => {
    const { caller } = submitter;
    const { accountId } = caller;
    const { id = newId(), within } = own;
    const made = newTask(read, { ...submitter, id }, options.pricing);
    const work = (transaction: PoolClient) => accept(transaction, { made, caller, at, within });
    let accepted: SeenTask;
    try {
      accepted = await answering(inTransaction(pool, work, { isPipelined: true }));
    } catch (error) {
      if (error instanceof NotInserted) return replay(pool, read, accountId);
      throw error;
    }
    at("submit.committed");
    options.onAccepted?.(accepted);
    return { task: accepted, replayed: false };
  };
}

/** There is such a task, or no room for one: what was done for it is undone. */
class NotInserted extends Error {}

interface Accepting {
  readonly made: NewTask;
  readonly caller: KeyCaller;
  readonly at: NonNullable<SubmitOptions["at"]>;
  readonly within: OwnSubmit["within"];
}

/**
 * Both statements go out at once, unless something belongs to the task. The money comes last, for it locks the account.
 *
 * @throws NotInserted; GatewayError INSUFFICIENT_BALANCE
 */
async function accept(
  transaction: PoolClient,
  { made, caller, at, within }: Accepting,
): Promise<SeenTask> {
  const { accountId, keyId, keyLimitNanos } = caller;
  const key = keyLimitNanos === undefined ? { keyId } : { keyId, keyLimitNanos };
  const holds = [{ id: made.id, amountNanos: made.holdNanos, ...key }];
  const batch = { accountId, holds, ttlMs: taskHoldTtlMs };
  const insert = { name: "task_insert", text: sql.insert, values: [...made.values] };
  const inserting = transaction.query<SeenTask>(insert);
  if (within !== undefined) {
    if ((await inserting).rows.length === 0) throw new NotInserted("not inserted");
    await within(transaction);
  }
  const holding = applyIn(transaction, batch);
  at("submit.sent");
  const [inserted, held] = await Promise.all([inserting, holding]);
  at("submit.held");
  const [task] = inserted.rows;
  if (task === undefined) throw new NotInserted("not inserted");
  const [verdict] = held.holds;
  if (verdict?.admitted === false) throw holdRefused(verdict, made.holdNanos, keyLimitNanos);
  return task;
}

interface NewTask {
  readonly id: string;
  readonly holdNanos: bigint;
  /** The parameters of the insert. */
  readonly values: readonly unknown[];
}

function newTask(
  read: SubmitRead,
  { caller, requestId, id }: Submitter & { readonly id: string },
  pricing: TaskPricing,
): NewTask {
  const { taskModel, params, callbackId, callbackUrl } = read;
  const { model } = taskModel;
  const { discountBp = 0 } = caller;
  const price = pricing.priceAt(model, Date.now());
  const holdNanos = pricing.holdUnits(price, taskModel.units(params), discountBp);
  const asked = [model.key, model.type, JSON.stringify(params), read.fingerprint];
  const values = [
    ...[id, caller.accountId, caller.keyId, ...asked, callbackId, callbackUrl, requestId],
    ...[taskQueueMs, holdNanos.toString(), pricing.version(price), discountBp],
    isCancelBilled(model),
  ];
  return { id, holdNanos, values };
}

/** What an insert met that did not happen: the same callback id, or a full queue. */
async function replay(pool: Pool, read: SubmitRead, accountId: string): Promise<Submitted> {
  const { callbackId } = read;
  if (callbackId === null) throw queueFull();
  const found = pool.query<SeenTask & { readonly fingerprint: Buffer }>(sql.find, [
    accountId,
    callbackId,
  ]);
  const { rows } = await answering(found);
  const [task] = rows;
  if (task === undefined) throw queueFull();
  if (!task.fingerprint.equals(read.fingerprint)) {
    throw callbackIdReused(read.callbackIdName, task.id);
  }
  return { task, replayed: true };
}

function ignore(): void {}
