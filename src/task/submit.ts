/**
 * Accepts tasks: the row and the money in one statement. The hold of a task is the only one there is for
 * it: whoever runs it, a text generation too, holds nothing again, and its end settles this hold (R-TSK-6).
 */
import { DatabaseError, type Pool, type PoolClient } from "pg";
import { batchValues } from "../billing/ledger/apply-in.ts";
import { applyCall, holdVerdicts } from "../billing/ledger/batch.ts";
import type { KeyCaller } from "../core/caller.ts";
import type { ModelConfig, PriceConfig } from "../config/config.ts";
import { queuedTasksMax, taskQueueMs } from "../config/limits.ts";
import { answering } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { openPool } from "../db/open-pool.ts";
import type { TaskUnits } from "../vendor/task.ts";
import { isCancelBilled, taskHold } from "./charge.ts";
import { callbackIdReused, holdRefused, queueFull } from "./failures.ts";
import { inTransaction } from "./transition.ts";
import type { SeenTask } from "./store.ts";
import type { ReadSubmit } from "./submit-form.ts";
import { seenColumns } from "./task-row.ts";
import { newId } from "../core/uuid.ts";

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

/** Where a process can die: on the way to the database, before the commit where there is one, and after it. */
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

/** How many parameters the task has; those of the money follow. */
const taskParameters = 15;

/**
 * Task and money by one statement: the account is locked for no longer than it takes, and nothing has to be undone.
 * - The queue is counted no further than its end. No row: it is full, or there is such a task.
 * - The money is asked for only where there is room, hence the account from there. A verdict: it was refused.
 * - Whoever submits with the same callback id at the same moment waits for the account, and then for nothing: the
 *   task's unique key undoes both.
 */
const acceptStatement = {
  name: "task_accept",
  text: `
    with room as materialized (
      select $2::uuid as account_id
      where (select count(*) from
          (select from task where account_id = $2 and state = 'queued' limit ${queuedTasksMax}) as waiting
        ) < ${queuedTasksMax}
        and not exists (select from task where account_id = $2 and callback_id = $8)
    ), held as materialized (
      select money.hold_verdicts
      from room cross join lateral ${applyCall("room.account_id", taskParameters + 1)} as money
    ), accepted as (
      insert into task (id, account_id, key_id, model, type, params, fingerprint, callback_id, callback_url,
        request_id, deadline, hold, price_version, discount_bp, is_cancel_billed)
      select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + $11 * interval '1 ms', $12, $13, $14, $15
      from held where hold_verdicts is null
      returning ${seenColumns}
    )
    select held.hold_verdicts, accepted.* from held left join accepted on true`,
} as const;

/** The account's key of its callback ids. */
const uniqueConstraint = "task_account_id_callback_id_unique";

const findSql = `select ${seenColumns}, fingerprint from task where account_id = $1 and callback_id = $2`;

/** How many connections submits may open. */
const poolMax = 8;

/**
 * Opens the connections of submits: of their own, so that a burst of them keeps nobody else waiting, and with
 * statements that go out together. A submit asks the database once.
 */
export function openSubmitPool(url: string): Pool {
  return openPool(url, { max: poolMax, for: "callers", isPipelined: true });
}

/** Makes it. */
export function createSubmit(options: SubmitOptions): Submit {
  const { pool, at = ignore } = options;
  return async (read, submitter, { id = newId(), within } = {}) => {
    const { caller } = submitter;
    const made = newTask(read, { ...submitter, id }, options.pricing);
    const asked = { made, caller, at };
    const work = async (transaction: PoolClient): Promise<SeenTask> => {
      const task = await accept(transaction, asked);
      await within?.(transaction);
      at("submit.held");
      return task;
    };
    let accepted: SeenTask;
    try {
      const accepting =
        within === undefined
          ? accept(pool, asked)
          : inTransaction(pool, work, { isPipelined: true });
      accepted = await answering(accepting);
    } catch (error) {
      const earlier = isRefusal(error) ? await findEarlier(pool, read, caller) : undefined;
      if (earlier !== undefined) return earlier;
      throw error instanceof NoRoom ? queueFull() : error;
    }
    at("submit.committed");
    options.onAccepted?.(accepted);
    return { task: accepted, replayed: false };
  };
}

/** There is such a task, or no room for one. Nothing has changed. */
class NoRoom extends Error {}

/** Whether it may be that there is such a task. Money too is refused where the first one has just taken the last. */
function isRefusal(error: unknown): boolean {
  if (error instanceof NoRoom) return true;
  if (error instanceof GatewayError) return error.code === ErrorCode.INSUFFICIENT_BALANCE;
  return error instanceof DatabaseError && error.constraint === uniqueConstraint;
}

interface Accepting {
  readonly made: NewTask;
  readonly caller: KeyCaller;
  readonly at: NonNullable<SubmitOptions["at"]>;
}

/** @throws NoRoom; GatewayError INSUFFICIENT_BALANCE; the driver's error of {@link uniqueConstraint} */
async function accept(
  database: Pick<Pool, "query">,
  { made, caller, at }: Accepting,
): Promise<SeenTask> {
  const [, ...money] = batchValues(taskHold(caller, made.id, made.holdNanos));
  const accepting = database.query<SeenTask & { readonly hold_verdicts: string | null }>({
    ...acceptStatement,
    values: [...made.values, ...money],
  });
  at("submit.sent");
  const [task] = (await accepting).rows;
  if (task === undefined) throw new NoRoom("no room");
  const [verdict] = holdVerdicts({ hold_verdicts: task.hold_verdicts }) ?? [];
  if (verdict?.admitted === false) throw holdRefused(verdict, made.holdNanos, caller.keyLimitNanos);
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

/** The task that was accepted with the same callback id; `undefined`: there is none. @throws GatewayError */
async function findEarlier(
  pool: Pool,
  { callbackId, callbackIdName, fingerprint }: SubmitRead,
  { accountId }: KeyCaller,
): Promise<Submitted | undefined> {
  if (callbackId === null) return undefined;
  const found = pool.query<SeenTask & { readonly fingerprint: Buffer }>(findSql, [
    accountId,
    callbackId,
  ]);
  const [task] = (await answering(found)).rows;
  if (task === undefined) return undefined;
  if (!task.fingerprint.equals(fingerprint)) throw callbackIdReused(callbackIdName, task.id);
  return { task, replayed: true };
}

function ignore(): void {}
