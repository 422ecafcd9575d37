/** Vendors' charges for tasks that had ended. The operator bears these costs. */
import {
  type TaskUpdate,
  VendorReplyError,
  type TaskOutcome,
  type VendorTasks,
} from "../../provider/task.ts";
import { stoppedOutcome } from "./charge.ts";
import type { VendorHealth } from "./vendor-health.ts";
import type { TaskWork, Work } from "./task-work.ts";
import type { TaskRow } from "../task-row.ts";
import { confirmVendorTaskId } from "./vendor-notifications.ts";
import { warnEvery } from "./running.ts";

/** Ended tasks are polled this many times less often: no client waits for them. */
const pauseFactor = 4;

/** $1: id, $2: fence, $3: its notification count as read, $4: the pause in milliseconds. */
const releaseSql = `
  update task set lease_until = null, poll_count = poll_count + 1, next_time = clock_timestamp()
    + case when notification_count <> $3 then 0 else $4 end * interval '1 ms'
  where id = $1 and fence = $2 and is_late_charge_pending`;

/** The outcome that the vendor charges for; undefined if there is none. */
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
    this.#work.warn("vendor did not report the cost of a task", {
      taskId,
      vendor,
      err: error,
    });
  }

  /**
   * @returns undefined if the vendor is not configured in this process
   * @throws HttpFailure; VendorReplyError
   */
  async #askVendor(
    { task, signal }: Work,
    tasks: VendorTasks | undefined,
  ): Promise<TaskUpdate | undefined> {
    if (tasks?.poll === undefined) return undefined;
    const vendorTaskId = task.vendor_task_id ?? (await confirmVendorTaskId(tasks, task, signal));
    // The vendor's task belongs to another client, so this task has none.
    if (vendorTaskId === undefined) return { status: "cancelled" };
    const asking = tasks.poll(vendorTaskId, signal, task.type);
    this.#work.failpoint("request.poll");
    const news = await asking;
    this.#work.failpoint("reply.poll");
    return news;
  }

  async #giveUp(work: Work): Promise<void> {
    const { id: taskId, vendor, attempt_token: attemptToken } = work.task;
    this.#work.warn("the vendor's cost of a task is unknown: compare with its invoice", {
      taskId,
      vendor,
      attemptToken,
    });
    await this.#work.endLateCharges(work);
  }

  async #release({ task }: Work, ms = this.#pauseOf(task)): Promise<void> {
    await this.#work.options.pool.query(releaseSql, [
      task.id,
      task.fence,
      task.notification_count,
      ms,
    ]);
  }

  #pauseOf({ vendor, poll_count: polls }: TaskRow): number {
    return this.#work.slots.plan(vendor, this.#work.pause(polls) * pauseFactor);
  }
}
