/**
 * The steps of tasks that vendors have accepted: polls, results, and the charges of tasks that had
 * ended.
 */
import { ErrorCode } from "../../core/errors.ts";
import { type TaskUpdate, VendorReplyError } from "../../provider/task.ts";
import { stoppedOutcome } from "./charge.ts";
import { faultCode, timedOut } from "../failures.ts";
import type { Finalize } from "../submit/submitting.ts";
import { TaskPlaces } from "../submit/task-places.ts";
import type { VendorHealth } from "./vendor-health.ts";
import type { TaskWork, Work } from "./task-work.ts";
import type { TaskRow } from "../task-row.ts";
import { setTimeout as delay } from "node:timers/promises";

/** Number of consecutive failed polls between two warnings. */
export const warnEvery = 10;

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

  /** Polls a task; cancels it first if that was requested, and ends it at its deadline. */
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
    // The vendor has no poll: it may send a notification.
    await this.#work.release(work, task.left_ms);
  }

  /**
   * Ends a task at its deadline. An end that its vendor reports by now is accepted, because there
   * may have been no poll for a while.
   */
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
    // The vendor may still charge a task that continues there.
    await this.#work.fail(work, { ...timedOut, set: { is_late_charge_pending: !isStopped } });
  }

  /**
   * The vendor's report of a task; undefined if it has no poll.
   *
   * @throws HttpFailure; VendorReplyError; Error if the vendor is not configured in this process.
   * It may be in another one, while processes are reconfigured one by one
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
        // Clients of a native API cancel directly at the vendor.
        if (task.cancel_requested || task.path !== null) return this.#work.cancel(work, news);
        return this.#work.fail(work, {
          code: ErrorCode.UPSTREAM_ERROR,
          message: "the vendor ended the task; nothing was charged",
          ...(news.reportedCost && { outcome: stoppedOutcome(news.reportedCost) }),
        });
    }
  }

  /** Retries after a failed poll. It does not fail the task: polls continue until the deadline. */
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
    // If a cancelled task is billed, the next poll reports the vendor's charge.
    const isEnd = answer === "cancelled" && !(task.is_cancel_billed && tasks.poll !== undefined);
    if (!isEnd) await this.#work.recordEvent(task, stopKind, { answer });
    return isEnd;
  }

  async #wasStopped({ id }: TaskRow): Promise<boolean> {
    const sql = "select from task_event where task_id = $1 and kind = $2 limit 1";
    return (await this.#work.options.pool.query(sql, [id, stopKind])).rows.length > 0;
  }
}
