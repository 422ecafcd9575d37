/**
 * Runs tasks. The row of a task is the message: it is taken under a lease by the database's clock, one step is
 * made, and what came of it is written down; a process that dies in between loses its lease, and another one goes
 * on from what was durable.
 *
 * Not pg-boss 12.35.0: it claims by priority and age, so another account's first task comes after 1,000 of one; with
 * three processes that fetch it ran 36 tasks of an account where 20 may; and a job has one limit, a task two, its
 * account's and its vendor's. What it could do is to say when to look, at hardly more CPU; but the row would keep its
 * lease and fence all the same, since a doubled job must do no harm, and one statement less would be a table more that
 * can disagree with it. All figures: docs/performance.md. Webhooks are sent in the same way.
 */
import type { Pool } from "pg";
import {
  taskAccountRunningMax,
  taskChecksMax,
  taskClaimMax,
  taskSubmitsMax,
} from "../config/limits.ts";
import { singly } from "../core/async.ts";
import {
  findWork,
  pickUp,
  takeDue,
  takeOverdue,
  takeTrailing,
  vendorFor,
  type TaskRoute,
} from "./claim.ts";
import { Finalizing } from "./finalizing.ts";
import { type Lease, Leases } from "./leases.ts";
import { growingPauseMs } from "./poll-slots.ts";
import { Running } from "./running.ts";
import { Standings } from "./vendor-health.ts";
import { Submitting } from "./submitting.ts";
import { Trailing } from "./late-charges.ts";
import type { TaskRow } from "./task-row.ts";
import { timedOut } from "./failures.ts";
import { TaskWork, type Work } from "./task-work.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** Runs tasks from {@link start} to {@link stop}. */
export interface TaskWorker {
  start(): void;
  /** A task is to end: where this process is asking for it and that ends it, it ends. Cheap, never fails. */
  cancel(taskId: string): void;
  /** Looks for work now: there is something new. Cheap, never fails. */
  wake(): void;
  /**
   * Takes nothing more, and hands over: what can be done again elsewhere is given back at once; what a vendor
   * is being asked for may be answered for `graceMs`, and is then left to be found out. Default 0.
   */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
  /** How many tasks this process works on at this moment. */
  readonly underWay: () => number;
}

const firstId = "00000000-0000-0000-0000-000000000000";

/** Makes a worker. Every process may run one. */
export function createTaskWorker(options: WorkerOptions): TaskWorker {
  return new RunningWorker(options);
}

class RunningWorker implements TaskWorker {
  readonly #pool: Pool;
  readonly #work: TaskWork;
  readonly #leases: Leases;
  readonly #submitting: Submitting;
  readonly #running: Running;
  readonly #trailing: Trailing;
  readonly #finalizing: Finalizing;
  readonly #routes: ReadonlyMap<string, readonly TaskRoute[]>;
  readonly #look: ReturnType<typeof singly>;
  readonly #submits = new Set<Promise<void>>();
  readonly #checks = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #after = firstId;
  #isAgain = false;
  /** Whether this process could take no more: then each step that ends makes room. */
  #isFull = false;
  /** Whether accounts or vendors could: then each task that ends does. */
  #isShort = false;
  #hasEnded = false;
  #isStopping = false;

  constructor(options: WorkerOptions) {
    const onEnd: WorkerOptions["onEnd"] = (task, record) => {
      this.#hasEnded = true;
      options.onEnd?.(task, record);
    };
    const work = new TaskWork({ ...options, onEnd }, () => this.wake());
    const failed = (error: unknown): void =>
      work.warn("tasks could not be taken: tried again", { err: error });
    const { leaseMs, heartbeatMs } = work.timings;
    this.#pool = options.pool;
    this.#work = work;
    this.#leases = new Leases({ pool: options.pool, leaseMs, heartbeatMs, failed });
    this.#finalizing = new Finalizing(work);
    const finalize = this.#finalizing.finalize.bind(this.#finalizing);
    const standings = standingsOf(work);
    this.#submitting = new Submitting(work, finalize, standings);
    this.#running = new Running(work, finalize, standings);
    this.#trailing = new Trailing(work, standings);
    this.#routes = routesOf(options);
    this.#look = singly(() => this.#lookOnce(), failed);
  }

  underWay = (): number => this.#leases.size;

  start(): void {
    this.#leases.start();
    this.#timer = setInterval(() => this.wake(), this.#work.timings.scanMs);
    this.#timer.unref();
    this.wake();
  }

  cancel(taskId: string): void {
    this.#leases.cancel(taskId);
  }

  wake(): void {
    if (this.#isStopping) return;
    // One that is under way may have looked already at what is new.
    this.#isAgain = true;
    void this.#look();
  }

  async stop({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#isStopping = true;
    this.#leases.handOver();
    clearInterval(this.#timer);
    await this.#look.ended();
    const last = setTimeout(() => this.#leases.giveUp(), graceMs);
    await Promise.all([...this.#submits, ...this.#checks]);
    clearTimeout(last);
    await this.#leases.stop();
  }

  async #lookOnce(): Promise<void> {
    while (this.#isAgain && !this.#isStopping) {
      this.#isAgain = false;
      this.#isFull = false;
      this.#hasEnded = false;
      const { queued, due, trailing } = await findWork(this.#pool);
      if (due) await this.#takeDue(takeDue);
      if (queued) await this.#pickUp();
      if (trailing) await this.#takeDue(takeTrailing);
    }
  }

  async #takeDue(take: typeof takeDue): Promise<void> {
    const limit = Math.min(taskClaimMax, taskChecksMax - this.#checks.size);
    this.#isFull ||= limit <= 0;
    if (limit <= 0) return;
    const askedMs = performance.now();
    const tasks = await take(this.#pool, limit, this.#work.timings.leaseMs);
    if (tasks.length > 0) this.#work.at("due.answered");
    this.#isAgain ||= tasks.length === limit;
    for (const task of tasks) {
      this.#begin(this.#checks, task, askedMs, async (work) => {
        // It was taken while this process began to stop.
        if (work.signal.aborted) await this.#work.release(work, 0);
        else await this.#goOn(work);
      });
    }
  }

  async #pickUp(): Promise<void> {
    for (const task of await takeOverdue(this.#pool, taskClaimMax)) {
      this.#begin(this.#checks, task, performance.now(), (work) => this.#work.fail(work, timedOut));
    }
    const { vendors, text, accountMax = taskAccountRunningMax } = this.#work.options;
    const limit = Math.min(taskClaimMax, taskSubmitsMax - this.#submits.size);
    this.#isFull ||= limit <= 0;
    if (limit <= 0) return;
    const askedMs = performance.now();
    const { tasks, after } = await pickUp(this.#pool, {
      routes: this.#routes,
      vendorMax: (vendor) => (vendors.get(vendor) ?? text?.vendors.get(vendor))?.maxInFlight,
      accountMax,
      limit,
      leaseMs: this.#work.timings.leaseMs,
      runMs: (model) => this.#work.runMs(model),
      after: this.#after,
    });
    this.#after = after;
    if (tasks.length > 0) this.#work.at("claim.answered");
    this.#isAgain ||= tasks.length > 0;
    this.#isShort = tasks.length === 0;
    for (const task of tasks) {
      this.#begin(this.#submits, task, askedMs, (work) => this.#submitting.submit(work));
    }
  }

  /** Goes on with a task, from where it is. */
  #goOn(work: Work): Promise<void> {
    switch (work.task.state) {
      case "submitting":
      case "submit_unknown":
        return this.#submitting.recover(work);
      case "running":
        return this.#running.look(work);
      case "finalizing":
        return this.#finalizing.recover(work);
      case "failed":
      case "cancelled":
        return this.#trailing.look(work);
      case "queued":
      case "completed":
        break;
    }
    throw new Error(`nothing to do for a task that is ${work.task.state}`);
  }

  #begin(
    all: Set<Promise<void>>,
    task: TaskRow,
    askedMs: number,
    step: (work: Work) => Promise<void>,
  ): void {
    const lease = this.#leases.begin(task, askedMs);
    const running = this.#try(workOf(task, lease), step).finally(() => {
      lease.end();
      all.delete(running);
      if (this.#isFull || (this.#isShort && this.#hasEnded)) this.wake();
    });
    all.add(running);
  }

  async #try(work: Work, step: (work: Work) => Promise<void>): Promise<void> {
    try {
      await step(work);
    } catch (error) {
      // Its lease ends, and somebody goes on from what is durable.
      const { id: taskId, state } = work.task;
      this.#work.warn("a step of a task failed", { taskId, state, err: error });
    }
  }
}

/** Its signals are made where somebody asks for them: most steps need one of them or none. */
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

function standingsOf({ options, timings, random, warn }: TaskWork): Standings {
  const scale = { firstMs: timings.pollMs, longestMs: timings.faultPauseMs };
  return new Standings({
    pause: (count) => growingPauseMs(scale, count, random()),
    onAlarm: (alarm) => options.onAlarm?.(alarm),
    onBack: ({ vendor, vendor_model: model }) =>
      warn("a vendor takes tasks again that it had refused", { vendor, model }),
  });
}

/** Where tasks of each model can go: to vendors that run tasks of its type. */
function routesOf(options: WorkerOptions): ReadonlyMap<string, readonly TaskRoute[]> {
  const routes = [...options.models].map(([key, model]): [string, readonly TaskRoute[]] => {
    const { type } = model;
    const runs = ({ vendor, model: name }: TaskRoute): boolean =>
      vendorFor(options, {
        type,
        model: key,
        vendor,
        vendor_model: name,
        path: null,
      })?.tasks.types.has(type) === true;
    return [key, model.routes.filter(runs)];
  });
  return new Map(routes.filter(([, usable]) => usable.length > 0));
}
