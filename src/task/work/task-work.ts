/** The operations that every step of a task uses: transitions, pauses, ends, late results. */
import { setTimeout as delay } from "node:timers/promises";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { bookVendorCost } from "../../billing/ledger/apply-in.ts";
import type { RouteConfig } from "../../config/config.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { isDatabaseLost } from "../../core/database-lost.ts";
import { errorMeanings, type SentErrorCode } from "../../core/errors.ts";
import type { TaskOutcome, ReportedCost } from "../../provider/task.ts";
import { requestedUnits } from "../../provider/task-params.ts";
import { chargeOf, type Ended, stoppedOutcome, type TaskCharge, usageOf } from "./charge.ts";
import { endingOf, type Failure } from "../failures.ts";
import type { Lease } from "./leases.ts";
import { recordNotification } from "./vendor-notifications.ts";
import {
  inTransaction,
  type Transition,
  type TransitionColumns,
  applyTransition,
} from "../transition.ts";
import { growingPauseMs, PollSlots } from "./poll-slots.ts";
import { statesBefore, type TaskState, transitions } from "../state.ts";
import { type StoredFileJson, type TaskRow, type WholeTask, workColumns } from "../task-row.ts";
import {
  timingsOf,
  type WorkerOptions,
  type WorkerFailpoint,
  type WorkerTimings,
  type WorkerVendor,
} from "./worker-options.ts";
import { requeueUnsent, type TaskVendorRef, vendorFor } from "./claim.ts";

/** A vendor's result for a task that had ended. */
export interface LateResult {
  /** The vendor's task id. The stored one by default. */
  readonly vendorTaskId?: string | null | undefined;
  /** The vendor's output, which it charges for. Unknown or none by default. */
  readonly outcome?: TaskOutcome | undefined;
}

/** The details of a stopped task. */
export interface Stopped {
  /** Further columns to write. None by default. */
  readonly set?: NonNullable<Failure["set"]>;
  /** The vendor's charge. Zero by default. */
  readonly reportedCost?: ReportedCost | undefined;
}

/** A claimed task. */
export interface Work {
  readonly task: TaskRow;
  readonly lease: Lease;
  /** Aborts work that another process can repeat: the lease was lost, or this process stops. */
  readonly signal: AbortSignal;
  /**
   * Aborts work that cannot be repeated: the lease was lost, or the grace time of a stop is over.
   */
  readonly lastSignal: AbortSignal;
  /**
   * Whether a vendor has failed at the task: its work costs money, so the first vendor is not tried
   * again. Default false.
   */
  readonly hasFailed?: boolean;
  /** The credentials of the vendor that have refused the task. None by default. */
  readonly refusedCredentials?: ReadonlySet<string>;
  /**
   * The routes that have refused the task, including the current one. The current one by default.
   */
  readonly triedRoutes?: readonly RouteConfig[];
  /** Whether a vendor had no capacity, and may have some later. Default false. */
  readonly isAwaited?: boolean;
}

/** The parts of the work that a step needs. */
type Step = Pick<Work, "task" | "lastSignal">;

/** The pause before a transition is retried while the database is unreachable. */
const retryMs = 500;

/** The most characters of an error message that are kept. */
const errorCharsMax = 8_192;

/** $1: id, $2: fence. */
const endLateChargesSql = `
  update task set is_late_charge_pending = false, lease_until = null
  where id = $1 and fence = $2 and is_late_charge_pending`;

/**
 * A transition to a state that other processes cannot reach without a new request to the vendor.
 */
interface KeptTransition {
  readonly event: "accept" | "produce" | "complete";
}

/**
 * Reclaims a task from a process that recovers it. Not from one that polls it, since its vendor
 * will answer again. $1: id, $2 to $4: the attempt, $5: states, $6: the lease.
 */
const takeBackSql = `
  update task set fence = fence + 1, lease_until = clock_timestamp() + $6 * interval '1 ms',
    next_time = clock_timestamp() + $6 * interval '1 ms'
  where id = $1 and attempt_token = $2 and vendor = $3 and vendor_model = $4
    and state = any($5) and state <> 'running'
  returning ${workColumns}`;

/** The operations of the steps. */
export class TaskWork {
  readonly options: WorkerOptions;
  readonly timings: WorkerTimings;
  readonly failpoint: (point: WorkerFailpoint) => void;
  readonly warn: NonNullable<WorkerOptions["warn"]>;
  readonly random: () => number;
  /** The schedule of polls. */
  readonly slots: PollSlots;
  readonly #wake: () => void;

  /** @param wake called when a task is due */
  constructor(options: WorkerOptions, wake: () => void) {
    this.options = options;
    this.#wake = wake;
    this.timings = timingsOf(options.timings);
    this.failpoint = options.failpoint ?? (() => {});
    this.warn = options.warn ?? (() => {});
    this.random = options.random ?? Math.random;
    // Tasks of native APIs poll with the same credential.
    const perSecond = (vendor: string) => options.vendors.get(vendor)?.pollsPerSecond;
    this.slots = new PollSlots({ perSecond });
  }

  readonly vendorOf = (task: TaskVendorRef): WorkerVendor | undefined =>
    vendorFor(this.options, task);

  /** Maximum running time of a task of a model. */
  runMs(model: string): number {
    return this.options.config.models.get(model)?.deadlineMs ?? this.timings.runMs;
  }

  /**
   * The pause before the next attempt in milliseconds.
   *
   * @param count number of attempts so far
   */
  pause(count: number): number {
    const { pollMs, pollMsMax } = this.timings;
    return growingPauseMs({ firstMs: pollMs, longestMs: pollMsMax }, count, this.random());
  }

  /** The pause before the next poll in milliseconds, within the vendor's poll rate. */
  pollPause({ vendor }: TaskVendorRef, count: number): number {
    return this.slots.plan(vendor, this.pause(count));
  }

  /**
   * Applies a transition. It is retried while the database is unreachable, because a vendor's
   * answer must not get lost.
   *
   * @returns undefined if another process has the task, or its state has changed
   */
  async transition(work: Step, move: Transition) {
    const { task } = work;
    const point = move.event ?? "progress";
    return this.#untilBack(work, async (isRepeated) => {
      const moving = applyTransition(this.options, task, move);
      this.failpoint(`${point}.sent`);
      const moved = (await moving) ?? (isRepeated ? await this.#find(task, move) : undefined);
      this.failpoint(`${point}.answered`);
      if (moved?.finish_time) {
        const { record, implausible } = move.charge ?? {};
        this.options.onEnd?.(moved, record);
        if (implausible !== undefined) this.options.onImplausible?.(moved, implausible);
      }
      return moved;
    });
  }

  /**
   * Repeats a step while the database is unreachable. Otherwise a failed step would lose data that
   * only this process has, such as a vendor's answer.
   */
  async #untilBack<Result>(
    { lastSignal }: Pick<Work, "lastSignal">,
    step: (isRepeated: boolean) => Promise<Result>,
  ): Promise<Result> {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        return await step(isRepeated);
      } catch (error) {
        if (!isDatabaseLost(error) || lastSignal.aborted) throw error;
        // A lost lease means that the database is back: one more attempt shows which process has
        // the task.
        await delay(retryMs, undefined, { signal: lastSignal }).catch(() => {});
      }
    }
  }

  /**
   * Applies a transition that stores data that only this process has: a vendor's answer, a finished
   * result. If the lease expired during an outage of the database and another process has begun to
   * recover the task, it is reclaimed.
   */
  async transitionKept(work: Step, move: Transition & KeptTransition) {
    const moved = await this.transition(work, move);
    if (moved !== undefined) return moved;
    const row = await this.#untilBack(work, () =>
      this.#takeBack(work.task, statesBefore(move.event)),
    );
    const task = row && { ...row, params: work.task.params };
    return task && this.transition({ ...work, task }, move);
  }

  /**
   * Reclaims a task, with a lease, from the process that recovers it. Undefined if its state is not
   * in `states`, or it has another attempt now.
   */
  async #takeBack(task: TaskRow, states: readonly TaskState[]): Promise<TaskRow | undefined> {
    const { id, attempt_token: token, vendor, vendor_model: model } = task;
    const values = [id, token, vendor, model, states, this.timings.leaseMs];
    const { rows } = await this.options.pool.query<TaskRow>(takeBackSql, values);
    return rows[0];
  }

  /**
   * Queues a task again if this process did not call its vendor: after a claim without an answer,
   * or after another process reclaimed the task. The other process does not know that the vendor
   * was not called. It would fail the task if the vendor cannot be polled.
   */
  async requeueUnsent(work: Step): Promise<void> {
    if (await this.#untilBack(work, () => requeueUnsent(this.options.pool, work.task)))
      this.#wake();
  }

  /** The task, if the transition was committed although its answer was lost. */
  async #find(task: TaskRow, { event }: Transition): Promise<TaskRow | undefined> {
    const state = event === undefined ? task.state : transitions[event].to;
    const sql = `select ${workColumns} from task where id = $1 and fence = $2 and state = $3`;
    const { rows } = await this.options.pool.query<TaskRow>(sql, [task.id, task.fence, state]);
    return rows[0];
  }

  /** The task with its parameters. Waits while the database is unreachable. */
  withParams(work: Step): Promise<WholeTask> {
    return this.#untilBack(work, () => this.#readParams(work.task));
  }

  async #readParams(task: TaskRow): Promise<WholeTask> {
    const { id, params } = task;
    if (params !== null) return { ...task, params };
    const sql = "select params from task where id = $1";
    const { rows } = await this.options.pool.query<Pick<WholeTask, "params">>(sql, [id]);
    if (rows[0] === undefined) throw new Error(`task ${id} is gone`);
    return { ...task, params: rows[0].params };
  }

  /** Releases a task, due again after `releaseMs`. */
  release(work: Work, releaseMs: number, set: TransitionColumns = {}, progress?: number) {
    return this.transition(work, { releaseMs, set, progress });
  }

  /** Completes a task, and charges it. */
  async complete(
    work: Work,
    outcome: TaskOutcome,
    files: readonly StoredFileJson[],
    expireTime: Date | null,
  ): Promise<void> {
    const task = await this.withParams(work);
    const price = this.#untilBack(work, () => this.options.findPrice(task.price_version));
    const ended = {
      outcome,
      ...this.#asked(task),
      price: await price,
      errorCode: "",
      ending: CallEnding.COMPLETED,
      status: 200,
    };
    const result = { files, ...(outcome.text !== undefined && { text: outcome.text }) };
    const charge = this.#charge(task, ended);
    const set = {
      result: JSON.stringify(result),
      usage: JSON.stringify(charge.usage),
      expire_time: expireTime,
    };
    const { inSameTransaction } = outcome;
    const move = { event: "complete", set, charge, inSameTransaction } as const;
    if (!(await this.transitionKept(work, move)))
      await this.recordLate(task, "completed", { outcome });
  }

  /** Fails a task. Free of charge. */
  async fail(work: Step, failure: Failure): Promise<void> {
    const task = await this.withParams(work);
    const { word, status } = errorMeanings[failure.code satisfies SentErrorCode];
    const { outcome } = failure;
    const charge = this.#charge(task, {
      ...(outcome && { outcome, ...this.#asked(task) }),
      errorCode: word,
      ending: endingOf(failure.code),
      status,
    });
    // PostgreSQL's texts cannot hold U+0000.
    const error = failure.message.replaceAll("\0", "\ufffd").slice(0, errorCharsMax);
    const set = { error_code: word, error, ...failure.set };
    if (!(await this.transition(work, { event: "fail", set, charge })))
      await this.recordLate(task, word, { outcome });
  }

  /**
   * Cancels a task. Free of charge, unless its model is configured otherwise.
   *
   * @param stopped.reportedCost the vendor's charge. Zero by default
   */
  async cancel(work: Work, { set = {}, reportedCost }: Stopped = {}): Promise<void> {
    const task = await this.withParams(work);
    const outcome = reportedCost && stoppedOutcome(reportedCost);
    const isBilled = outcome !== undefined && task.is_cancel_billed;
    const ended = {
      ...(outcome && { outcome }),
      ...(isBilled && { price: await this.options.findPrice(task.price_version) }),
      errorCode: "",
      ending: CallEnding.CANCELLED,
      status: 499,
    };
    const charge = this.#charge(task, ended);
    const usage = isBilled ? { usage: JSON.stringify(charge.usage) } : {};
    if (!(await this.transition(work, { event: "cancel", set: { ...usage, ...set }, charge })))
      await this.recordLate(task, "cancelled", { outcome });
  }

  /** Records a result that was too late for the task, and books the operator's cost for it. */
  async recordLate(task: TaskRow, news: string, late: LateResult = {}): Promise<void> {
    const { vendorTaskId = task.vendor_task_id, outcome } = late;
    await this.recordEvent(task, "late", { news, vendor: task.vendor, vendorTaskId });
    this.warn("a vendor's result arrived after its task had ended", {
      taskId: task.id,
      news,
      vendor: task.vendor,
    });
    if (outcome !== undefined) {
      return this.#reportLateCost(task, await this.#bookLate(this.options.pool, task, outcome));
    }
    // The task runs there: its late charge is polled for.
    if (vendorTaskId === null || vendorTaskId === task.vendor_task_id) return;
    const { pool } = this.options;
    await recordNotification(pool, task.attempt_token ?? "", { vendorTaskId, isConfirmed: true });
  }

  /**
   * Records a notification that a vendor's client got in this process. Never fails: the next poll
   * would find it.
   */
  onVendorNotification({ attempt_token: token }: TaskRow): void {
    void recordNotification(this.options.pool, token ?? "").then(this.#wake, () => {});
  }

  /**
   * Ends the polls of an ended task, and books its late charge.
   *
   * @param outcome the outcome that its vendor charges for. None by default
   */
  async endLateCharges({ task }: Pick<Work, "task">, outcome?: TaskOutcome): Promise<void> {
    const ending = inTransaction(this.options.pool, async (transaction) => {
      const { rowCount } = await transaction.query(endLateChargesSql, [task.id, task.fence]);
      return rowCount === 1 && outcome ? this.#bookLate(transaction, task, outcome) : 0n;
    });
    this.failpoint("late_charge.sent");
    const costNanos = await ending;
    this.failpoint("late_charge.answered");
    this.#reportLateCost(task, costNanos);
  }

  #reportLateCost(task: TaskRow, costNanos: bigint): void {
    if (costNanos > 0n) this.options.onLateCost?.(task, costNanos);
  }

  /** Books the vendor's cost. Returns the booked amount in nano-USD; 0 if there is none. */
  async #bookLate(database: Queryable, late: TaskRow, outcome: TaskOutcome): Promise<bigint> {
    const task = await this.#readParams(late);
    const { id: callId, account_id: accountId } = task;
    const costNanos = this.#vendorCost(task, { outcome, ...this.#asked(task) });
    if (costNanos === undefined || costNanos <= 0n) return 0n;
    const verdict = await bookVendorCost(database, { accountId, callId, costNanos });
    return verdict === "booked" ? costNanos : 0n;
  }

  #vendorCost(task: TaskRow, ended: Pick<Ended, "outcome" | "asked">): bigint | undefined {
    return ended.outcome && this.options.vendorCost?.(task, usageOf(ended));
  }

  /** Appends an event to the task's history. */
  async recordEvent(
    { id, state }: TaskRow,
    kind: string,
    detail: object | null = null,
  ): Promise<void> {
    const sql = "insert into task_event (task_id, kind, state, detail) values ($1, $2, $3, $4)";
    await this.options.pool.query(sql, [id, kind, state, detail && JSON.stringify(detail)]);
  }

  /**
   * The requested units. A model that was removed while its task ran does not make the task free.
   */
  #asked(task: WholeTask): Pick<Ended, "asked"> {
    const model = this.options.config.models.get(task.model) ?? {
      type: task.type,
      maxOutputTokens: 0,
    };
    const vendor = this.vendorOf(task);
    return vendor ? { asked: requestedUnits(vendor.tasks, task.params, model) } : {};
  }

  #charge(task: WholeTask, ended: Omit<Ended, "vendorCostNanos">): TaskCharge {
    const vendorCostNanos = this.#vendorCost(task, ended);
    return chargeOf(task, { ...ended, vendorCostNanos });
  }
}
