/** What every step of a task is made of: changing it, asking its vendor, ending it. */
import { setTimeout as delay } from "node:timers/promises";
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { bookVendorCost } from "../billing/ledger/apply-in.ts";
import type { Queryable } from "../db/queryable.ts";
import { isDatabaseLost } from "../core/database-lost.ts";
import { errorMeanings, type SentErrorCode } from "../core/errors.ts";
import type { TaskOutcome, TaskTaken } from "../vendor/task.ts";
import { askedUnits } from "../vendor/task-params.ts";
import { chargeOf, type Ended, stoppedOutcome, usageOf } from "./charge.ts";
import { endingOf, type Failure } from "./failures.ts";
import type { Lease } from "./leases.ts";
import { hintTask } from "./vendor-notifications.ts";
import { inTransaction, type Move, type MoveColumns, moveTask } from "./transition.ts";
import { growingPauseMs, PollSlots } from "./poll-slots.ts";
import { transitions } from "./state.ts";
import { type StoredFileJson, type TaskRow, type WholeTask, workColumns } from "./task-row.ts";
import {
  timingsOf,
  type WorkerOptions,
  type WorkerPoint,
  type WorkerTimings,
  type WorkerVendor,
} from "./worker-options.ts";
import { type TaskPlace, vendorFor } from "./claim.ts";

/** What came too late for a task. */
export interface LateNews {
  /** What its vendor calls it. Default: as it is known. */
  readonly vendorTaskId?: string | null | undefined;
  /** What the vendor has made: it takes its money. Default: not known, or nothing. */
  readonly outcome?: TaskOutcome | undefined;
}

/** How a task was stopped. */
export interface Stopped {
  /** What else is written. Default: nothing. */
  readonly set?: NonNullable<Failure["set"]>;
  /** What its vendor took for it. Default: nothing. */
  readonly taken?: TaskTaken | undefined;
}

/** A task in work. */
export interface Work {
  readonly task: TaskRow;
  readonly lease: Lease;
  /** Ends what can be done again by somebody else: the lease is lost, or this process stops. */
  readonly signal: AbortSignal;
  /** Ends what cannot: the lease is lost, or this process has waited long enough. */
  readonly lastSignal: AbortSignal;
  /** Whether a vendor has failed at it: what it did is paid for, so nobody begins again with the first vendor.
   * Default false. */
  readonly hasFailed?: boolean;
  /** Whether one had no room for it, and may have some later. Default false. */
  readonly isAwaited?: boolean;
}

/** How long before a change is tried again while the database is away, in milliseconds. */
const retryMs = 500;

/** The most characters of an error message that are kept. */
const errorCharsMax = 8_192;

/** $1: id, $2: fence. */
const trailedSql = `
  update task set is_trailing = false, lease_until = null
  where id = $1 and fence = $2 and is_trailing`;

/** The tools of the steps. */
export class TaskWork {
  readonly options: WorkerOptions;
  readonly timings: WorkerTimings;
  readonly at: (point: WorkerPoint) => void;
  readonly warn: NonNullable<WorkerOptions["warn"]>;
  readonly random: () => number;
  /** When vendors are asked how tasks stand. */
  readonly slots: PollSlots;
  readonly #wake: () => void;

  /** @param wake called when there is something to look at */
  constructor(options: WorkerOptions, wake: () => void) {
    this.options = options;
    this.#wake = wake;
    this.timings = timingsOf(options.timings);
    this.at = options.at ?? (() => {});
    this.warn = options.warn ?? (() => {});
    this.random = options.random ?? Math.random;
    // Tasks in a vendor's own form ask with the same credential.
    const perSecond = (vendor: string) => options.vendors.get(vendor)?.pollsPerSecond;
    this.slots = new PollSlots({ perSecond });
  }

  vendorOf(task: TaskPlace): WorkerVendor | undefined {
    return vendorFor(this.options, task);
  }

  /** How long a task of a model may run, in milliseconds. */
  runMs(model: string): number {
    return this.options.models.get(model)?.deadlineMs ?? this.timings.runMs;
  }

  /** The pause before the next time, in milliseconds; `count`: how often it was tried before. */
  pause(count: number): number {
    const { pollMs, pollMsMax } = this.timings;
    return growingPauseMs({ firstMs: pollMs, longestMs: pollMsMax }, count, this.random());
  }

  /** The same, before a vendor is asked how a task stands that it has. */
  pollPause({ vendor }: TaskPlace, count: number): number {
    return this.slots.plan(vendor, this.pause(count));
  }

  /**
   * Changes a task; while the database is away it is tried again, for what a vendor has answered must not get
   * lost.
   *
   * @returns `undefined` where the task is somebody else's, or has gone on
   */
  async move(work: Pick<Work, "task" | "lastSignal">, move: Move) {
    const { task } = work;
    const point = move.event ?? "progress";
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        const moving = moveTask(this.options, task, move);
        this.at(`${point}.sent`);
        const moved = (await moving) ?? (isRepeated ? await this.#find(task, move) : undefined);
        this.at(`${point}.answered`);
        if (moved?.finish_time) this.options.onEnd?.(moved, move.charge?.record);
        return moved;
      } catch (error) {
        if (!isDatabaseLost(error) || work.lastSignal.aborted) throw error;
        await delay(retryMs, undefined, { signal: work.lastSignal });
      }
    }
  }

  /** Whether a change took place whose answer was lost. */
  async #find(task: TaskRow, { event }: Move): Promise<TaskRow | undefined> {
    const state = event === undefined ? task.state : transitions[event].to;
    const sql = `select ${workColumns} from task where id = $1 and fence = $2 and state = $3`;
    const { rows } = await this.options.pool.query<TaskRow>(sql, [task.id, task.fence, state]);
    return rows[0];
  }

  /** A task with what was asked for. */
  async whole(task: TaskRow): Promise<WholeTask> {
    const { id, params } = task;
    if (params !== null) return { ...task, params };
    const sql = "select params from task where id = $1";
    const { rows } = await this.options.pool.query<Pick<WholeTask, "params">>(sql, [id]);
    if (rows[0] === undefined) throw new Error(`task ${id} is gone`);
    return { ...task, params: rows[0].params };
  }

  /** Gives a task back, to be looked at again. */
  release(work: Work, releaseMs: number, set: MoveColumns = {}, progress?: number) {
    return this.move(work, { releaseMs, set, progress });
  }

  /** Ends a task that has a result. */
  async complete(
    work: Work,
    outcome: TaskOutcome,
    files: readonly StoredFileJson[],
    expireTime: Date | null,
  ): Promise<void> {
    const task = await this.whole(work.task);
    const ended = {
      outcome,
      ...this.#asked(task),
      price: await this.options.findPrice(task.price_version),
      errorCode: "",
      ending: CallEnding.COMPLETED,
      status: 200,
    };
    const result = { files, ...(outcome.text !== undefined && { text: outcome.text }) };
    const set = {
      result: JSON.stringify(result),
      usage: JSON.stringify(usageOf(ended)),
      expire_time: expireTime,
    };
    const charge = this.#charge(task, ended);
    const { within } = outcome;
    if (!(await this.move(work, { event: "complete", set, charge, within })))
      await this.late(task, "completed", { outcome });
  }

  /** Ends a task without a result. Free of charge. */
  async fail(work: Pick<Work, "task" | "lastSignal">, failure: Failure): Promise<void> {
    const task = await this.whole(work.task);
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
    if (!(await this.move(work, { event: "fail", set, charge })))
      await this.late(task, word, { outcome });
  }

  /**
   * Ends a task because that was asked for. Free of charge, unless its model says otherwise.
   *
   * @param stopped.taken what its vendor took for it; default: nothing
   */
  async cancel(work: Work, { set = {}, taken }: Stopped = {}): Promise<void> {
    const task = await this.whole(work.task);
    const outcome = taken && stoppedOutcome(taken);
    const isBilled = outcome !== undefined && task.is_cancel_billed;
    const ended = {
      ...(outcome && { outcome }),
      ...(isBilled && { price: await this.options.findPrice(task.price_version) }),
      errorCode: "",
      ending: CallEnding.CANCELLED,
      status: 499,
    };
    const usage = isBilled ? { usage: JSON.stringify(usageOf(ended)) } : {};
    const charge = this.#charge(task, ended);
    if (!(await this.move(work, { event: "cancel", set: { ...usage, ...set }, charge })))
      await this.late(task, "cancelled", { outcome });
  }

  /** Writes down what the task itself can no longer be told, and what the operator pays for it. */
  async late(task: TaskRow, news: string, late: LateNews = {}): Promise<void> {
    const { vendorTaskId = task.vendor_task_id, outcome } = late;
    await this.note(task, "late", { news, vendor: task.vendor, vendorTaskId });
    this.warn("news of a task came too late", { taskId: task.id, news, vendor: task.vendor });
    if (outcome !== undefined) {
      return this.#tellLate(task, await this.#bookLate(this.options.pool, task, outcome));
    }
    // It runs there: what becomes of it is asked for.
    if (vendorTaskId === null || vendorTaskId === task.vendor_task_id) return;
    const { pool } = this.options;
    await hintTask(pool, task.attempt_token ?? "", { vendorTaskId, isSure: true });
  }

  /** A vendor tells in this process that there is news. Never fails: it would be found in time anyway. */
  heard({ attempt_token: token }: TaskRow): void {
    void hintTask(this.options.pool, token ?? "").then(this.#wake, () => {});
  }

  /** Ends to look after a task that has ended. @param outcome what its vendor made; default: nothing */
  async endTrail({ task }: Pick<Work, "task">, outcome?: TaskOutcome): Promise<void> {
    const ending = inTransaction(this.options.pool, async (transaction) => {
      const { rowCount } = await transaction.query(trailedSql, [task.id, task.fence]);
      return rowCount === 1 && outcome ? this.#bookLate(transaction, task, outcome) : 0n;
    });
    this.at("trail.sent");
    const costNanos = await ending;
    this.at("trail.answered");
    this.#tellLate(task, costNanos);
  }

  #tellLate(task: TaskRow, costNanos: bigint): void {
    if (costNanos > 0n) this.options.onLateCost?.(task, costNanos);
  }

  /** Returns what was booked; 0: nothing. */
  async #bookLate(database: Queryable, late: TaskRow, outcome: TaskOutcome): Promise<bigint> {
    const task = await this.whole(late);
    const { id: callId, account_id: accountId } = task;
    const costNanos = this.#vendorCost(task, { outcome, ...this.#asked(task) });
    if (costNanos === undefined || costNanos <= 0n) return 0n;
    const verdict = await bookVendorCost(database, { accountId, callId, costNanos });
    return verdict === "booked" ? costNanos : 0n;
  }

  #vendorCost(task: TaskRow, ended: Pick<Ended, "outcome" | "asked">): bigint | undefined {
    return ended.outcome && this.options.vendorCost?.(task, usageOf(ended));
  }

  /** Appends to what is known of a task. */
  async note({ id, state }: TaskRow, kind: string, detail: object | null = null): Promise<void> {
    const sql = "insert into task_event (task_id, kind, state, detail) values ($1, $2, $3, $4)";
    await this.options.pool.query(sql, [id, kind, state, detail && JSON.stringify(detail)]);
  }

  #asked(task: WholeTask): Pick<Ended, "asked"> {
    const model = this.options.models.get(task.model);
    const vendor = this.vendorOf(task);
    return model && vendor ? { asked: askedUnits(vendor.tasks, task.params, model) } : {};
  }

  #charge(
    task: WholeTask,
    ended: Omit<Ended, "now" | "vendorCostNanos">,
  ): NonNullable<Move["charge"]> {
    const vendorCostNanos = this.#vendorCost(task, ended);
    return chargeOf(task, { ...ended, vendorCostNanos, now: new Date() });
  }
}
