/**
 * Runs tasks. The task's row is the message: a worker claims it under a lease by the database's
 * clock, takes one step, and records the result. If a process dies in between, its lease expires,
 * and another one continues from the durable state.
 *
 * Rejected: pg-boss 12.35.0. It claims by priority and age, so another account's first task follows
 * 1,000 of one; with three processes that fetch, it ran 36 tasks of an account with a limit of 20.
 * A job has one limit, a task two: its account's and its vendor's. It could schedule the next poll,
 * with hardly more CPU. But the row would still need its lease and fence, since a duplicate job
 * must do no harm. One statement less would be one table more that can disagree with it. All
 * figures: docs/adr/0003-rows-instead-of-pg-boss.md. Webhooks are sent in the same way.
 */
import type { Pool } from "pg";
import {
  taskAccountRunningMax,
  taskChecksMax,
  taskClaimMax,
  taskSubmitsMax,
} from "../../core/limits.ts";
import type { Config } from "../../config/config.ts";
import { derived } from "../../core/derived.ts";
import { nilUuid } from "../../core/uuid.ts";
import { LeaseLoop } from "../../db/lease-loop.ts";
import {
  ClaimUnanswered,
  findWork,
  claimQueued,
  claimDue,
  claimOverdue,
  claimLateCharges,
  vendorFor,
  type TaskRoute,
} from "./claim.ts";
import { RunningSteps } from "./running.ts";
import { FinalizeSteps } from "./result-copies.ts";
import { LateChargeSteps } from "./late-charges.ts";
import { type Lease, Leases } from "./leases.ts";
import { growingPauseMs } from "./poll-slots.ts";
import { VendorHealth } from "./vendor-health.ts";
import { SubmitSteps } from "../submit/submitting.ts";
import type { TaskRow } from "../task-row.ts";
import { timedOut } from "../failures.ts";
import { TaskWork, type Work } from "./task-work.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** Runs tasks from {@link start} to {@link stop}. */
export interface TaskWorker {
  start(): void;
  /**
   * Ends a vendor request that this process waits for, if that cancels the task. Cheap, never
   * fails.
   */
  cancel(taskId: string): void;
  /** Claims tasks now: there is new work. Cheap, never fails. */
  wake(): void;
  /**
   * Claims nothing more and hands over. Steps that another process can repeat are released at once.
   * A submit that waits for its vendor may be answered for `graceMs`; after that its outcome is
   * recovered later. Default 0.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** Number of tasks that this process works on at this moment. */
  readonly underWay: () => number;
}

/** Creates a worker. Every process may run one. */
export function createTaskWorker(options: WorkerOptions): TaskWorker {
  return new RunningWorker(options);
}

/** Steps of one kind: the maximum and the current number in this process. */
interface StepLimit {
  readonly max: number;
  count: number;
}

class RunningWorker implements TaskWorker {
  readonly #pool: Pool;
  readonly #work: TaskWork;
  readonly #loop: LeaseLoop;
  readonly #leases: Leases;
  readonly #submitting: SubmitSteps;
  readonly #running: RunningSteps;
  readonly #lateCharges: LateChargeSteps;
  readonly #finalizing: FinalizeSteps;
  readonly #routes: () => ReadonlyMap<string, readonly TaskRoute[]>;
  readonly #submits: StepLimit = { max: taskSubmitsMax, count: 0 };
  readonly #checks: StepLimit = { max: taskChecksMax, count: 0 };
  /** The account that was served last: its next turn follows the others'. */
  #lastAccount = nilUuid;
  /**
   * Whether this process is at one of its limits: then each step that ends makes a claim possible.
   */
  #isFull = false;
  /**
   * Whether tasks wait for their account's or vendor's limit: then each task that ends makes a
   * claim possible.
   */
  #isLimited = false;
  #hasEnded = false;

  constructor(options: WorkerOptions) {
    const onEnd: WorkerOptions["onEnd"] = (task, record) => {
      this.#hasEnded = true;
      options.onEnd?.(task, record);
    };
    const work = new TaskWork({ ...options, onEnd }, () => this.wake());
    const onError = (error: unknown): void =>
      work.warn("tasks could not be claimed; trying again", { err: error });
    const { leaseMs, heartbeatMs, scanMs } = work.timings;
    this.#pool = options.pool;
    this.#work = work;
    this.#loop = new LeaseLoop({ claim: () => this.#claim(), scanMs, onError });
    this.#leases = new Leases({ pool: options.pool, leaseMs, heartbeatMs, onError });
    this.#finalizing = new FinalizeSteps(work);
    const finalize = this.#finalizing.finalize.bind(this.#finalizing);
    const vendorHealth = createVendorHealth(work);
    this.#submitting = new SubmitSteps(work, finalize, vendorHealth);
    this.#running = new RunningSteps(work, finalize, vendorHealth);
    this.#lateCharges = new LateChargeSteps(work, vendorHealth);
    this.#routes = derived(
      () => options.config.models,
      (models) => routesOf(options, models),
    );
  }

  underWay = (): number => this.#leases.size;

  start(): void {
    this.#leases.start();
    this.#loop.start();
  }

  cancel(taskId: string): void {
    this.#leases.cancel(taskId);
  }

  wake(): void {
    this.#loop.wake();
  }

  async stop({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    const stopped = this.#loop.stop();
    this.#leases.handOver();
    await stopped;
    const last = setTimeout(() => this.#leases.giveUp(), graceMs);
    await this.#loop.drained();
    clearTimeout(last);
    await this.#leases.stop();
  }

  async #claim(): Promise<void> {
    this.#isFull = false;
    this.#hasEnded = false;
    const { queued, due, late_charges: lateCharges } = await findWork(this.#pool);
    if (due) await this.#claimDue(claimDue);
    if (queued) await this.#claimQueued();
    if (lateCharges) await this.#claimDue(claimLateCharges);
  }

  async #claimDue(claim: typeof claimDue): Promise<void> {
    const limit = this.#roomFor(this.#checks);
    if (limit === 0) return;
    const claimStartMs = performance.now();
    const tasks = await claim(this.#pool, limit, this.#work.timings.leaseMs);
    if (tasks.length > 0) this.#work.failpoint("due.answered");
    if (tasks.length === limit) this.wake();
    for (const task of tasks) {
      this.#begin(this.#checks, task, claimStartMs, async (work) => {
        // The worker began to stop during the claim.
        if (work.signal.aborted) await this.#work.release(work, 0);
        else await this.#nextStep(work);
      });
    }
  }

  async #claimQueued(): Promise<void> {
    for (const task of await claimOverdue(this.#pool, taskClaimMax)) {
      this.#begin(this.#checks, task, performance.now(), (work) => this.#work.fail(work, timedOut));
    }
    const { vendors, text, accountMax = taskAccountRunningMax } = this.#work.options;
    const limit = this.#roomFor(this.#submits);
    if (limit === 0) return;
    const claimStartMs = performance.now();
    const claiming = claimQueued(this.#pool, {
      routes: this.#routes(),
      choose: (model, usable) => this.#choose(model, usable),
      vendorMax: (vendor) => (vendors.get(vendor) ?? text?.vendors.get(vendor))?.maxInFlight,
      accountMax,
      limit,
      leaseMs: this.#work.timings.leaseMs,
      runMs: (model) => this.#work.runMs(model),
      after: this.#lastAccount,
      onCommit: () => this.#work.failpoint("claim.sent"),
    });
    const { tasks, after } = await claiming.catch((error: unknown) => {
      if (error instanceof ClaimUnanswered) {
        for (const task of error.tasks) {
          this.#begin(this.#submits, task, claimStartMs, (work) => this.#work.requeueUnsent(work));
        }
      }
      throw error;
    });
    this.#lastAccount = after;
    this.#isLimited = tasks.length === 0;
    if (tasks.length > 0) {
      this.#work.failpoint("claim.answered");
      this.wake();
    }
    for (const task of tasks) {
      this.#begin(this.#submits, task, claimStartMs, (work) => this.#submitting.submit(work));
    }
  }

  #choose(model: string, usable: readonly TaskRoute[]): TaskRoute | undefined {
    const { routing, config } = this.#work.options;
    const found = config.models.get(model);
    if (routing === undefined || found === undefined) return usable[0];
    return routing.chooseRoute(found, usable);
  }

  /** Number of tasks that can be claimed for steps of a kind; 0 if the limit is reached. */
  #roomFor({ max, count }: StepLimit): number {
    const room = Math.max(0, Math.min(taskClaimMax, max - count));
    this.#isFull ||= room === 0;
    return room;
  }

  /** Takes the next step of a claimed task, by its state. */
  #nextStep(work: Work): Promise<void> {
    switch (work.task.state) {
      case "submitting":
      case "submit_unknown":
        return this.#submitting.recover(work);
      case "running":
        return this.#running.poll(work);
      case "finalizing":
        return this.#finalizing.recover(work);
      case "failed":
      case "cancelled":
        return this.#lateCharges.poll(work);
      case "queued":
      case "completed":
        break;
    }
    throw new Error(`nothing to do for a task that is ${work.task.state}`);
  }

  #begin(
    limit: StepLimit,
    task: TaskRow,
    claimStartMs: number,
    step: (work: Work) => Promise<void>,
  ): void {
    const lease = this.#leases.begin(task, claimStartMs);
    limit.count++;
    const ended = (): void => {
      lease.end();
      limit.count--;
      if (this.#isFull || (this.#isLimited && this.#hasEnded)) this.wake();
    };
    this.#loop.track(this.#runStep(workOf(task, lease), step).finally(ended));
  }

  async #runStep(work: Work, step: (work: Work) => Promise<void>): Promise<void> {
    try {
      await step(work);
    } catch (error) {
      // Its lease ends, and a process continues from the durable state.
      const { id: taskId, state } = work.task;
      this.#work.warn("a step of a task failed", { taskId, state, err: error });
    }
  }
}

/**
 * A claimed task for its step. Getters, because most steps need only one of the signals or none.
 */
function workOf(task: TaskRow, lease: Lease): Work {
  return {
    task,
    lease,
    get signal() {
      return lease.signal;
    },
    get lastSignal() {
      return lease.lastSignal;
    },
  };
}

function createVendorHealth({ options, timings, random, warn }: TaskWork): VendorHealth {
  const scale = { firstMs: timings.pollMs, longestMs: timings.faultPauseMs };
  return new VendorHealth({
    pause: (count) => growingPauseMs(scale, count, random()),
    onAlarm: (alarm) => options.onAlarm?.(alarm),
    onBack: ({ vendor, vendor_model: model }) =>
      warn("a vendor accepts tasks again", { vendor, model }),
  });
}

/** The routes of each model whose vendors run tasks of its type. */
function routesOf(
  options: WorkerOptions,
  models: Config["models"],
): ReadonlyMap<string, readonly TaskRoute[]> {
  const routes = [...models].map(([key, model]): [string, readonly TaskRoute[]] => {
    const { type } = model;
    const canRun = ({ vendor, model: name }: TaskRoute): boolean =>
      vendorFor(options, {
        type,
        model: key,
        vendor,
        vendor_model: name,
        credential: "",
        path: null,
      })?.tasks.types.has(type) === true;
    return [key, model.routes.filter(canRun)];
  });
  return new Map(routes.filter(([, usable]) => usable.length > 0));
}
