/** The steps of tasks that vendors have accepted: polls, results, and the charges of tasks that had ended. */
import { ErrorCode } from "../../core/errors.ts";
import {
  type TaskUpdate,
  VendorReplyError,
  type TaskOutcome,
  type VendorTasks,
  type VendorFile,
} from "../../provider/task.ts";
import { stoppedOutcome } from "./charge.ts";
import { faultCode, timedOut } from "../failures.ts";
import type { Finalize } from "../submit/submitting.ts";
import { TaskPlaces } from "../submit/task-places.ts";
import type { VendorHealth } from "./vendor-health.ts";
import type { TaskWork, Work } from "./task-work.ts";
import type { TaskRow, StoredFileJson } from "../task-row.ts";
import { confirmVendorTaskId } from "./vendor-notifications.ts";
import { setTimeout as delay } from "node:timers/promises";
import { taskFetchesMax } from "../../core/limits.ts";
import { isDatabaseLost } from "../../core/database-lost.ts";
import { ResultFailure, type StoredResult } from "../../result/result.ts";

/** Every how many failed polls in a row a warning is logged. */
const warnEvery = 10;

/** The kind of event that records a cancel request to the vendor. */
const stopKind = "stop_asked";

/** The steps of `running`. */
export class RunningSteps {
  readonly #work: TaskWork;
  readonly #finalize: Finalize;
  readonly #vendorHealth: VendorHealth;

  constructor(work: TaskWork, finalize: Finalize, vendorHealth: VendorHealth) {
    this.#work = work;
    this.#finalize = finalize;
    this.#vendorHealth = vendorHealth;
  }

  /** Polls a task; cancels it first where that was requested, and ends it at its deadline. */
  async poll(work: Work): Promise<void> {
    const { task } = work;
    if (task.left_ms <= 0) return this.#endOverdue(work);
    try {
      if (task.cancel_requested && (await this.#stop(work))) return this.#work.cancel(work);
    } catch (error) {
      return this.#retry(work, error);
    }
    const { slots } = this.#work;
    if (!slots.ask(task.vendor)) {
      return void (await this.#work.release(work, slots.plan(task.vendor, 0)));
    }
    let news: TaskUpdate | undefined;
    try {
      news = await this.#poll(work);
    } catch (error) {
      return this.#retry(work, error);
    }
    if (news !== undefined) {
      this.#vendorHealth.onPollAnswered(task);
      return this.#apply(work, news);
    }
    // The vendor has no poll: it may notify by itself.
    await this.#work.release(work, task.left_ms);
  }

  /** Ends a task at its deadline. An end that its vendor reports by now is taken: no process may have polled for a while. */
  async #endOverdue(work: Work): Promise<void> {
    const { task, signal } = work;
    const { slots } = this.#work;
    let news: TaskUpdate | undefined;
    try {
      if (!slots.ask(task.vendor)) {
        await delay(slots.plan(task.vendor, 0), undefined, { signal });
      }
      news = await this.#poll(work);
    } catch (error) {
      if (signal.aborted) return void (await this.#work.release(work, 0));
      this.#work.warn("a vendor did not report a task at its deadline", {
        taskId: task.id,
        vendor: task.vendor,
        err: error,
      });
    }
    if (news !== undefined && news.status !== "running") return this.#apply(work, news);
    const isStopped = await this.#stop(work).catch(() => false);
    // A task that goes on there may still be charged.
    await this.#work.fail(work, { ...timedOut, set: { is_trailing: !isStopped } });
  }

  /**
   * The vendor's report of a task; `undefined`: it has no poll.
   *
   * @throws HttpFailure; VendorReplyError; Error where this process does not know the vendor: another one may, while they get
   *   another configuration one after the other
   */
  async #poll({ task, signal }: Work): Promise<TaskUpdate | undefined> {
    const vendor = this.#work.vendorOf(task);
    if (vendor === undefined) {
      throw new Error("the vendor is not configured here: restore it until its tasks have ended");
    }
    const { tasks } = vendor;
    if (tasks?.poll === undefined || task.vendor_task_id === null) return undefined;
    const asking = tasks.poll(task.vendor_task_id, signal, task.type);
    this.#work.failpoint("request.poll");
    const news = await asking;
    this.#work.failpoint("reply.poll");
    return news;
  }

  async #apply(work: Work, news: TaskUpdate): Promise<void> {
    const { task } = work;
    switch (news.status) {
      case "running": {
        const polls = task.poll_count + 1;
        const set = { poll_count: polls, failure_count: 0 };
        await this.#work.release(work, this.#work.pollPause(task, polls), set, news.progress);
        return;
      }
      case "completed": {
        const move = { event: "produce", set: { failure_count: 0 } } as const;
        const produced = await this.#work.transition(work, move);
        if (produced !== undefined) await this.#finalize({ ...work, task: produced }, news.outcome);
        return;
      }
      case "failed": {
        const { code, message } = news.error;
        return this.#work.fail(work, { code: faultCode(code), message });
      }
      case "cancelled":
        // Clients of a native API cancel at the vendor itself.
        if (task.cancel_requested || task.path !== null) return this.#work.cancel(work, news);
        return this.#work.fail(work, {
          code: ErrorCode.UPSTREAM_ERROR,
          message: "the vendor ended the task; nothing was charged",
          ...(news.reportedCost && { outcome: stoppedOutcome(news.reportedCost) }),
        });
    }
  }

  /** Retries after a failed poll. It fails no task: polls go on until the deadline. */
  async #retry(work: Work, error: unknown): Promise<void> {
    const { task, signal } = work;
    if (signal.aborted) return void (await this.#work.release(work, 0));
    const fault = error instanceof VendorReplyError ? error.fault : undefined;
    if (fault !== undefined) {
      this.#vendorHealth.onPollRefused(task, fault);
      new TaskPlaces(this.#work.options.routing).pollRefused(task, fault);
    }
    const failures = task.failure_count + 1;
    if (failures % warnEvery === 0) {
      const fields = { taskId: task.id, vendor: task.vendor, failures, err: error };
      this.#work.warn("a vendor does not report the state of a task", fields);
      this.#work.options.onSilent?.(task.vendor, error);
    }
    const set = { failure_count: failures };
    await this.#work.release(
      work,
      this.#work.pollPause(task, task.poll_count + failures),
      set,
      task.progress,
    );
  }

  /** Cancels a task at its vendor, once. Returns whether that has ended it. @throws HttpFailure */
  async #stop({ task, signal }: Work): Promise<boolean> {
    const { tasks } = this.#work.vendorOf(task) ?? {};
    if (!tasks?.canCancel || !tasks.cancel || task.vendor_task_id === null) return false;
    if (await this.#wasStopped(task)) return false;
    const asking = tasks.cancel(task.vendor_task_id, signal);
    this.#work.failpoint("request.cancel");
    const answer = await asking;
    this.#work.failpoint("reply.cancel");
    // Where a cancelled task is billed, the next poll reports the vendor's charge.
    const isEnd = answer === "cancelled" && !(task.is_cancel_billed && tasks.poll !== undefined);
    if (!isEnd) await this.#work.recordEvent(task, stopKind, { answer });
    return isEnd;
  }

  async #wasStopped({ id }: TaskRow): Promise<boolean> {
    const sql = "select from task_event where task_id = $1 and kind = $2 limit 1";
    return (await this.#work.options.pool.query(sql, [id, stopKind])).rows.length > 0;
  }
}

// What vendors charged for tasks that had ended. The operator bears these costs.

/** Ended tasks are polled this many times less often: no client waits for them. */
const pauseFactor = 4;

/** $1: id, $2: fence, $3: its notification count as read, $4: the pause in milliseconds. */
const releaseSql = `
  update task set lease_until = null, poll_count = poll_count + 1, next_time = clock_timestamp()
    + case when hints <> $3 then 0 else $4 end * interval '1 ms'
  where id = $1 and fence = $2 and is_trailing`;

/** The outcome that the vendor charges for; `undefined`: none. */
function billedOutcome(news: TaskUpdate): TaskOutcome | undefined {
  if (news.status === "completed") return news.outcome;
  return news.status === "cancelled" && news.reportedCost
    ? stoppedOutcome(news.reportedCost)
    : undefined;
}

/** The steps of tasks that have ended, but may still run at their vendors. */
export class LateChargeSteps {
  readonly #work: TaskWork;

  readonly #vendorHealth: VendorHealth;

  constructor(work: TaskWork, vendorHealth: VendorHealth) {
    this.#work = work;
    this.#vendorHealth = vendorHealth;
  }

  /** Polls the vendor, and books its charge once the task has ended there. */
  async poll(work: Work): Promise<void> {
    const { task, signal } = work;
    if ((task.age_ms ?? 0) > this.#work.timings.lateChargeMs) return this.#giveUp(work);
    const { slots } = this.#work;
    if (!slots.ask(task.vendor)) return this.#release(work, slots.plan(task.vendor, 0));
    let news: TaskUpdate | undefined;
    try {
      news = await this.#askVendor(work, this.#work.vendorOf(task)?.tasks);
    } catch (error) {
      if (signal.aborted) return this.#release(work, 0);
      this.#warnSilent(work, error);
      return this.#release(work);
    }
    if (news === undefined || news.status === "running") return this.#release(work);
    await this.#work.endLateCharges(work, billedOutcome(news));
  }

  #warnSilent({ task }: Work, error: unknown): void {
    const { id: taskId, vendor } = task;
    const fault = error instanceof VendorReplyError ? error.fault : undefined;
    if (fault !== undefined) this.#vendorHealth.onPollRefused(task, fault);
    if (task.poll_count % warnEvery !== 0) return;
    this.#work.warn("a vendor does not say what it took for a task", {
      taskId,
      vendor,
      err: error,
    });
  }

  /** @returns `undefined`: this process does not know the vendor @throws HttpFailure; VendorReplyError */
  async #askVendor(
    { task, signal }: Work,
    tasks: VendorTasks | undefined,
  ): Promise<TaskUpdate | undefined> {
    if (tasks?.poll === undefined) return undefined;
    const vendorTaskId = task.vendor_task_id ?? (await confirmVendorTaskId(tasks, task, signal));
    // The vendor's task belongs to another client: none is ours.
    if (vendorTaskId === undefined) return { status: "cancelled" };
    const asking = tasks.poll(vendorTaskId, signal, task.type);
    this.#work.failpoint("request.poll");
    const news = await asking;
    this.#work.failpoint("reply.poll");
    return news;
  }

  async #giveUp(work: Work): Promise<void> {
    const { id: taskId, vendor, attempt_token: attemptToken } = work.task;
    this.#work.warn("what a vendor took for a task is not known: compare with its invoice", {
      taskId,
      vendor,
      attemptToken,
    });
    await this.#work.endLateCharges(work);
  }

  async #release({ task }: Work, ms = this.#pauseOf(task)): Promise<void> {
    await this.#work.options.pool.query(releaseSql, [task.id, task.fence, task.hints, ms]);
  }

  #pauseOf({ vendor, poll_count: polls }: TaskRow): number {
    return this.#work.slots.plan(vendor, this.#work.pause(polls) * pauseFactor);
  }
}

// The results of tasks, copied before their vendors delete them.

const goneMessage = "the result could not be fetched from the vendor; nothing was charged";

/** The steps of `finalizing`. */
export class FinalizeSteps {
  readonly #work: TaskWork;

  constructor(work: TaskWork) {
    this.#work = work;
  }

  /** Copies a result and ends the task. */
  async finalize(work: Work, outcome: TaskOutcome): Promise<void> {
    // Bytes that only this process has cannot be fetched by another one: it may use the grace time, and goes on where its
    // lease expired during an outage of the database.
    const isHere =
      outcome.files.some(({ bytes }) => bytes !== undefined) && !this.#canAskVendor(work);
    const signal = isHere ? work.lease.graceSignal : work.signal;
    const stored: StoredResult[] = [];
    try {
      for (const file of outcome.files) stored.push(await this.#store(work, file, signal));
    } catch (error) {
      if (signal.aborted) return void (await this.#work.release(work, 0));
      this.#work.warn("a result could not be fetched", { taskId: work.task.id, err: error });
      if (this.#work.vendorOf(work.task)?.isFileOptional) {
        return this.#work.complete(work, outcome, [], null);
      }
      const { RESULT_UNAVAILABLE: code } = ErrorCode;
      return this.#work.fail(work, { code, message: goneMessage, outcome });
    }
    const files = stored.map(
      ({ url, contentType, bytes, sha256 }): StoredFileJson => ({
        url,
        contentType,
        sizeBytes: bytes,
        sha256,
      }),
    );
    const times = stored.map(({ expireTime }) => expireTime.getTime());
    const expireTime = times.length === 0 ? null : new Date(Math.min(...times));
    await this.#work.complete(work, withMeasuredSeconds(outcome, stored), files, expireTime);
  }

  /** Continues a task whose process died: asks the vendor for the result again. */
  async recover(work: Work): Promise<void> {
    const { task, signal } = work;
    let outcome: TaskOutcome | undefined;
    try {
      outcome = await this.#askVendorAgain(work);
    } catch (error) {
      if (signal.aborted) return void (await this.#work.release(work, 0));
      this.#work.warn("a result could not be requested", { taskId: task.id, err: error });
    }
    if (outcome !== undefined) return this.finalize(work, outcome);
    const failures = task.failure_count + 1;
    const canAsk = this.#canAskVendor(work);
    // Its process may live and have the result, after an outage of the database: it has this time to store it.
    if (failures < (canAsk ? taskFetchesMax : 2)) {
      const pause = canAsk ? this.#work.pause(task.failure_count) : this.#work.timings.settleMs;
      return void (await this.#work.release(work, pause, { failure_count: failures }));
    }
    const { RESULT_UNAVAILABLE: code } = ErrorCode;
    // The vendor had completed the task, and charges for it.
    await this.#work.fail(work, { code, message: goneMessage, outcome: { files: [] } });
  }

  /** Stores one file. Files of a task come one after the other, so that no task gets more of the machine than others. */
  async #store({ task }: Work, file: VendorFile, signal: AbortSignal): Promise<StoredResult> {
    const { url, bytes, headers, redirectHosts, contentType } = file;
    const vendorUrl = this.#work.vendorOf(task)?.baseUrl;
    const { id: taskId, account_id: accountId } = task;
    for (let count = 1; ; ) {
      try {
        const source =
          bytes === undefined
            ? {
                url: url ?? "",
                ...(headers && { headers }),
                ...(redirectHosts && { redirectHosts }),
                ...(vendorUrl && { vendorUrl }),
              }
            : { bytes };
        const about = { contentType, accountId, taskId, signal };
        const stored = await this.#work.options.results.store(source, about);
        this.#work.failpoint("file.stored");
        return stored;
      } catch (error) {
        const isFinal = error instanceof ResultFailure && error.isFinal;
        if (isFinal || signal.aborted || count === taskFetchesMax) throw error;
        // A lost database says nothing about the result.
        if (!isDatabaseLost(error)) count++;
        await delay(this.#work.pause(count - 1), undefined, { signal });
      }
    }
  }

  /** Whether the vendor can be asked for the result again. */
  #canAskVendor({ task }: Work): boolean {
    const tasks = this.#work.vendorOf(task)?.tasks;
    if (tasks === undefined) return false;
    const canPoll = tasks.poll !== undefined && task.vendor_task_id !== null;
    return canPoll || tasks.resubmit !== "blind";
  }

  async #askVendorAgain(work: Work): Promise<TaskOutcome | undefined> {
    const { task, signal, lease } = work;
    const tasks = this.#work.vendorOf(task)?.tasks;
    const { vendor_task_id: vendorTaskId, attempt_token: attemptToken } = task;
    if (tasks === undefined || attemptToken === null) return undefined;
    if (tasks.poll !== undefined && vendorTaskId !== null) {
      const news = await tasks.poll(vendorTaskId, signal, task.type);
      return news.status === "completed" ? news.outcome : undefined;
    }
    if (tasks.resubmit === "blind" || !lease.isSafe()) return undefined;
    const { vendor_model: model, type, params } = await this.#work.withParams(work);
    const told =
      tasks.resubmit === "findable"
        ? await tasks.find?.(attemptToken, signal)
        : await tasks.submit({ attemptToken, model, type, params, signal });
    return told && "done" in told ? told.done : undefined;
  }
}

/** Adds the length of the files where the vendor does not report seconds: of videos, or of audio where there are none. */
function withMeasuredSeconds(outcome: TaskOutcome, stored: readonly StoredResult[]): TaskOutcome {
  if (outcome.units?.seconds !== undefined) return outcome;
  const timed = stored.filter(({ seconds }) => seconds !== undefined);
  const videos = timed.filter(({ contentType }) => contentType.startsWith("video/"));
  const counted = videos.length > 0 ? videos : timed;
  if (counted.length === 0) return outcome;
  const seconds = counted.reduce((sum, each) => sum + (each.seconds ?? 0), 0);
  return { ...outcome, units: { ...outcome.units, seconds } };
}
