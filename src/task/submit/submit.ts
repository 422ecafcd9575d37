/**
 * Accepts tasks: the row and the hold in one statement. A task has this one hold: running it, also
 * as a text generation, places no other, and its end settles it (R-TSK-6).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseError, type Pool, type PoolClient } from "pg";
import { holdRefused } from "../../billing/hold-refused.ts";
import { batchValues } from "../../billing/ledger/apply-in.ts";
import { applyCall, holdVerdicts } from "../../billing/ledger/batch.ts";
import type { JsonObject } from "@bufbuild/protobuf";
import type { PriceConfig } from "../../config/config.ts";
import { imagePriceOf, imageWordOf } from "../../config/price.ts";
import type { KeyCaller } from "../../core/caller.ts";
import { queuedTasksMax, submitWaitMs, taskQueueMs } from "../../core/limits.ts";
import {
  databaseUnavailable,
  isDatabaseLost,
  isRolledBack,
  mapDatabaseLoss,
} from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { refuseImageForm } from "../../calls/pipeline/quote.ts";
import { openPool } from "../../db/pool/open-pool.ts";
import { isCancelBilled, taskHold } from "../work/charge.ts";
import { callbackIdReused, queueFull } from "../failures.ts";
import { inTransaction } from "../transition.ts";
import type { TaskSummary } from "../store.ts";
import type { ParsedSubmit } from "./submit-form.ts";
import { whileAnswering } from "./while-answering.ts";
import type { Pricing } from "../../billing/prices/pricing.ts";
import { summaryColumns } from "../task-row.ts";
import type { Clock } from "../../core/clock.ts";
import type { DatabaseAddress } from "../../db/pool/server.ts";

/** The part of {@link Pricing} that tasks are held by. */
export type TaskPricing = Pick<Pricing, "priceNow" | "version" | "hold">;

/** Options of {@link createSubmit}. */
export interface SubmitOptions {
  /** From {@link openSubmitPool}. */
  readonly pool: Pool;
  readonly clock: Pick<Clock, "newId">;
  readonly pricing: TaskPricing;
  /** Called after a task was committed. Does nothing by default. */
  readonly onAccepted?: ((task: TaskSummary) => void) | undefined;
  /**
   * Called with a task that the database accepted although its client was refused. It has no
   * callback id, so a repeated submit cannot find it: cancel it. Does nothing by default.
   */
  readonly onUnknown?: ((task: TaskSummary) => void) | undefined;
  /** Called at failpoints, where tests kill the process. Does nothing by default. */
  readonly failpoint?: ((point: SubmitFailpoint) => void) | undefined;
}

/**
 * Failpoints of a submit: sent to the database, before the commit if there is one, and after it.
 */
export type SubmitFailpoint = `submit.${"sent" | "held" | "committed"}`;

/** The caller of a submit. */
export interface Submitter {
  readonly caller: KeyCaller;
  readonly requestId: string;
  /** The client's `traceparent` header. Default: the submit begins a trace. */
  readonly traceparent?: string | undefined;
}

/** The result of a submit. */
export interface Submitted {
  readonly task: TaskSummary;
  /** Whether it had been accepted before; then nothing changed. */
  readonly replayed: boolean;
}

/**
 * Accepts a task. @throws GatewayError INSUFFICIENT_BALANCE, QUEUE_FULL, IDEMPOTENCY_KEY_REUSED,
 * SERVICE_UNAVAILABLE
 */
export type Submit = (
  read: SubmitInput,
  submitter: Submitter,
  own?: SubmitOverrides,
) => Promise<Submitted>;

/** The members of a parsed submit that are stored. */
export type SubmitInput = Omit<ParsedSubmit, "taskModel"> & {
  readonly taskModel: Pick<ParsedSubmit["taskModel"], "model" | "units">;
};

/** Values that a caller of {@link Submit} may set. */
export interface SubmitOverrides {
  /** The task's id, a UUIDv7. A new one by default. */
  readonly id?: string;
  /** The path of the request in the call log. The path of tasks by default. */
  readonly callPath?: string | undefined;
  /** Writes further rows in the transaction that accepts the task. None by default. */
  readonly writeAlongside?: (transaction: PoolClient) => Promise<void>;
}

/** The number of parameters of the task; the parameters of the hold follow. */
const taskParameters = 17;

/**
 * Inserts the task and places the hold in one statement: the account is locked as briefly as
 * possible, and no undo is needed.
 * - The queue is counted up to its limit. No row in the answer: the queue is full, or there is a
 *   task with this callback id.
 * - The hold is placed only if the queue has capacity, hence `room.account_id`. A verdict in the
 *   answer: it was refused.
 * - A concurrent submit with the same callback id waits for the account's lock; the task's unique
 *   key then rolls back its insert together with its hold.
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
        request_id, deadline, hold, price_version, discount_bp, is_cancel_billed, call_path,
        traceparent)
      select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now() + $11 * interval '1 ms', $12, $13, $14, $15, $16, $17
      from held where hold_verdicts is null or hold_verdicts = 'b'
      returning ${summaryColumns}
    )
    select held.hold_verdicts, accepted.* from held left join accepted on true`,
} as const;

/** The unique key of an account's callback ids. */
const uniqueConstraint = "task_account_id_callback_id_unique";

const findSql = `select ${summaryColumns}, fingerprint from task where account_id = $1 and callback_id = $2`;

/** Maximum number of connections of submits. */
const poolMax = 8;

/**
 * Opens the connections of submits: separate, so that a burst of submits delays no other query, and
 * pipelined. A submit is one round trip.
 */
export function openSubmitPool(url: DatabaseAddress): Pool {
  return openPool(url, { max: poolMax, for: "callers", isPipelined: true });
}

/** Creates the submit. */
export function createSubmit(options: SubmitOptions): Submit {
  const { pool, onAccepted, onUnknown } = options;
  let answers = 0;
  pool.on("release", (error: Error | undefined) => {
    if (!error) answers += 1;
  });
  return async (read, submitter, own = {}) => {
    const onLate = ({ task, replayed }: Submitted): void => {
      if (replayed) return;
      // With a callback id, a client that repeats the submit gets this task: so it must run.
      if (read.callbackId === null) onUnknown?.(task);
      else onAccepted?.(task);
    };
    const onLost = (id: string): void =>
      void watch(pool, id, (task) => onLate({ task, replayed: false }));
    const begin = (isRefused: () => boolean): Promise<Submitted> =>
      submitOnce(options, { read, submitter, own, isRefused, onLost });
    let seen = answers;
    const hasAnswered = (): boolean => seen !== (seen = answers);
    const limit = { limitMs: submitWaitMs, hasAnswered, onLate };
    const submitted = await whileAnswering(limit, begin);
    if (!submitted.replayed) onAccepted?.(submitted.task);
    return submitted;
  };
}

interface Asked {
  readonly read: SubmitInput;
  readonly submitter: Submitter;
  readonly own: SubmitOverrides;
  /** Whether the client was refused meanwhile. */
  readonly isRefused: () => boolean;
  /**
   * Called with a task whose acceptance got no answer: its client is refused, but the task may
   * still be created.
   */
  readonly onLost: (id: string) => void;
}

async function submitOnce(
  { pool, clock, pricing, failpoint = ignore }: SubmitOptions,
  {
    read,
    submitter,
    own: { id = clock.newId(), callPath, writeAlongside },
    isRefused,
    onLost,
  }: Asked,
): Promise<Submitted> {
  const { caller } = submitter;
  const made = newTask(read, { ...submitter, id, callPath }, pricing);
  let isSent = false;
  const onSent = (): void => {
    isSent = true;
    failpoint("submit.sent");
  };
  const asked = { made, caller, onSent };
  const work = async (transaction: PoolClient): Promise<TaskSummary> => {
    refuseLate(isRefused);
    const task = await accept(transaction, asked);
    await writeAlongside?.(transaction);
    failpoint("submit.held");
    refuseLate(isRefused);
    return task;
  };
  let task: TaskSummary;
  try {
    const accepting =
      writeAlongside === undefined
        ? onConnection(pool, isRefused, (client) => accept(client, asked))
        : inTransaction(pool, work, { isPipelined: true });
    task = await mapDatabaseLoss(accepting);
  } catch (error) {
    if (isSent && isDatabaseLost(error) && !isRolledBack(error)) {
      // The connection broke. Mostly the database has answered: the answer was lost.
      const accepted = await findById(pool, id).catch(() => {});
      if (accepted !== undefined) return { task: accepted, replayed: false };
      onLost(id);
      throw error;
    }
    const earlier = isRefusal(error) ? await findEarlier(pool, read, caller) : undefined;
    if (earlier !== undefined) return earlier;
    throw error instanceof NotAccepted ? queueFull() : error;
  }
  failpoint("submit.committed");
  return { task, replayed: false };
}

/**
 * Runs a statement that is a whole transaction, unless the client was refused while it waited for
 * the connection.
 */
async function onConnection<T>(
  pool: Pool,
  isRefused: () => boolean,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    refuseLate(isRefused);
    return await work(client);
  } catch (error) {
    // After a refusal the connection is still usable.
    if (!isRefusal(error) && !(error instanceof GatewayError)) failure = error as Error;
    throw error;
  } finally {
    client.release(failure);
  }
}

/**
 * @throws GatewayError SERVICE_UNAVAILABLE if the client was refused already: then nothing may be
 * accepted
 */
function refuseLate(isRefused: () => boolean): void {
  if (isRefused()) throw databaseUnavailable();
}

/** The queue is full, or there is a task of this callback id. Nothing has changed. */
class NotAccepted extends Error {}

/**
 * Whether a task of this callback id may exist. This includes a refused hold: the first submit of
 * the same task may have used the money.
 */
function isRefusal(error: unknown): boolean {
  if (error instanceof NotAccepted) return true;
  if (error instanceof GatewayError) return error.code === ErrorCode.INSUFFICIENT_BALANCE;
  return error instanceof DatabaseError && error.constraint === uniqueConstraint;
}

interface Accepting {
  readonly made: NewTask;
  readonly caller: KeyCaller;
  /** Called when the statement has been sent. */
  readonly onSent: () => void;
}

/**
 * @throws NotAccepted; GatewayError INSUFFICIENT_BALANCE; the driver's error of {@link
 * uniqueConstraint}
 */
async function accept(
  database: Pick<Pool, "query">,
  { made, caller, onSent }: Accepting,
): Promise<TaskSummary> {
  const [, ...money] = batchValues(taskHold(caller, made.id, made.holdNanos));
  const accepting = database.query<TaskSummary & { readonly hold_verdicts: string | null }>({
    ...acceptStatement,
    values: [...made.values, ...money],
  });
  onSent();
  const [task] = (await accepting).rows;
  if (task === undefined) throw new NotAccepted("no room");
  const [verdict] = holdVerdicts({ hold_verdicts: task.hold_verdicts }) ?? [];
  if (verdict?.admitted === false) {
    const { keyLimitNanos: limitNanos } = caller;
    throw holdRefused({ verdict, neededNanos: made.holdNanos, limitNanos, subject: "task" });
  }
  return task;
}

interface NewTask {
  readonly id: string;
  readonly holdNanos: bigint;
  /** The parameters of the insert. */
  readonly values: readonly unknown[];
}

function newTask(
  read: SubmitInput,
  {
    caller,
    requestId,
    traceparent,
    id,
    callPath,
  }: Submitter & Required<Pick<SubmitOverrides, "callPath">> & { id: string },
  pricing: TaskPricing,
): NewTask {
  const { taskModel, params, callbackId, callbackUrl } = read;
  const { model } = taskModel;
  const { discountBp = 0 } = caller;
  const price = imagePriceAt(pricing.priceNow(model, caller.priceList), params);
  const holdNanos = pricing.hold(price, taskModel.units(params), discountBp);
  const asked = [model.key, model.type, JSON.stringify(params), read.fingerprint];
  const values = [
    ...[id, caller.accountId, caller.keyId, ...asked, callbackId, callbackUrl, requestId],
    ...[taskQueueMs, holdNanos.toString(), pricing.version(price), discountBp],
    ...[isCancelBilled(model, params), callPath ?? null, traceparent ?? null],
  ];
  return { id, holdNanos, values };
}

/**
 * The price of a task; from a table of image prices, the price of the requested images.
 *
 * @throws GatewayError INVALID_REQUEST
 */
function imagePriceAt(price: PriceConfig, params: JsonObject): PriceConfig {
  if (price.images === undefined) return price;
  const { size, resolution, quality } = params;
  const form = { size: imageWordOf(size ?? resolution), quality: imageWordOf(quality) };
  return imagePriceOf(price, form) ?? refuseImageForm(price, form);
}

/**
 * The task with the same callback id; undefined if there is none.
 *
 * @throws GatewayError IDEMPOTENCY_KEY_REUSED
 */
async function findEarlier(
  pool: Pool,
  { callbackId, callbackIdName, fingerprint }: SubmitInput,
  { accountId }: KeyCaller,
): Promise<Submitted | undefined> {
  if (callbackId === null) return undefined;
  const found = pool.query<TaskSummary & { readonly fingerprint: Buffer }>(findSql, [
    accountId,
    callbackId,
  ]);
  const [task] = (await mapDatabaseLoss(found)).rows;
  if (task === undefined) return undefined;
  if (!task.fingerprint.equals(fingerprint)) throw callbackIdReused(callbackIdName, task.id);
  return { task, replayed: true };
}

const findByIdSql = `select ${summaryColumns} from task where id = $1`;

async function findById(pool: Pool, id: string): Promise<TaskSummary | undefined> {
  return (await pool.query<TaskSummary>(findByIdSql, [id])).rows[0];
}

/** Interval of the queries for a task whose acceptance got no answer. */
const watchEveryMs = 1_000;

/**
 * Number of negative answers after which the task counts as absent: a statement whose connection
 * broke may run until its timeout.
 */
const absentMax = 30;

/** Maximum time of these queries if the database does not come back. */
const watchMs = 60 * 60 * 1_000;

/**
 * Queries a task whose acceptance got no answer, until the database has it or cannot accept it any
 * longer.
 */
async function watch(pool: Pool, id: string, onFound: (task: TaskSummary) => void): Promise<void> {
  const endMs = performance.now() + watchMs;
  for (let absent = 0; absent < absentMax && performance.now() < endMs; ) {
    await sleep(watchEveryMs, undefined, { ref: false });
    if (pool.ending) return;
    try {
      const task = await findById(pool, id);
      if (task !== undefined) return onFound(task);
      absent++;
    } catch {
      // The database is still unreachable.
    }
  }
}

function ignore(): void {}
