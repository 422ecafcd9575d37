/** Looks after tasks that vendors have: how they stand, and whether they are to end. */
import { ErrorCode } from "../core/errors.ts";
import { type TaskNews, VendorTrouble } from "../vendor/task.ts";
import { stoppedOutcome } from "./charge.ts";
import { faultCode, timedOut } from "./failures.ts";
import type { Finalize } from "./submitting.ts";
import type { Standings } from "./vendor-health.ts";
import type { TaskWork, Work } from "./task-work.ts";
import type { TaskRow } from "./task-row.ts";

/** How many bad answers in a row an operator is told of. */
const failuresTold = 10;

/** The kind of event by which is known that a vendor was asked to stop a task. */
const stopKind = "stop_asked";

/** The steps of `running`. */
export class Running {
  readonly #work: TaskWork;
  readonly #finalize: Finalize;
  readonly #standings: Standings;

  constructor(work: TaskWork, finalize: Finalize, standings: Standings) {
    this.#work = work;
    this.#finalize = finalize;
    this.#standings = standings;
  }

  /** Asks how a task stands, and stops it before where that was asked for. */
  async look(work: Work): Promise<void> {
    const { task } = work;
    if (task.left_ms <= 0) {
      const isStopped = await this.#stop(work).catch(() => false);
      // What goes on there may still be charged.
      return this.#work.fail(work, { ...timedOut, set: { is_trailing: !isStopped } });
    }
    try {
      if (task.cancel_requested && (await this.#stop(work))) return this.#work.cancel(work);
    } catch (error) {
      return this.#again(work, error);
    }
    const { slots } = this.#work;
    if (!slots.ask(task.vendor)) {
      return void (await this.#work.release(work, slots.plan(task.vendor, 0)));
    }
    let news: TaskNews | undefined;
    try {
      news = await this.#poll(work);
    } catch (error) {
      return this.#again(work, error);
    }
    if (news !== undefined) {
      this.#standings.told(task);
      return this.#take(work, news);
    }
    // Its vendor cannot be asked: it may tell by itself.
    await this.#work.release(work, task.left_ms);
  }

  /** What a vendor says of a task; `undefined`: it cannot be asked. @throws HttpFailure */
  async #poll({ task, signal }: Work): Promise<TaskNews | undefined> {
    const { tasks } = this.#work.vendorOf(task) ?? {};
    if (tasks?.poll === undefined || task.vendor_task_id === null) return undefined;
    const asking = tasks.poll(task.vendor_task_id, signal, task.type);
    this.#work.at("ask.poll");
    const news = await asking;
    this.#work.at("told.poll");
    return news;
  }

  async #take(work: Work, news: TaskNews): Promise<void> {
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
        const produced = await this.#work.move(work, move);
        if (produced !== undefined) await this.#finalize({ ...work, task: produced }, news.outcome);
        return;
      }
      case "failed": {
        const { code, message } = news.error;
        return this.#work.fail(work, { code: faultCode(code), message });
      }
      case "cancelled":
        // In the vendor's own form it is the vendor whom its client asks to stop.
        if (task.cancel_requested || task.path !== null) return this.#work.cancel(work, news);
        return this.#work.fail(work, {
          code: ErrorCode.UPSTREAM_ERROR,
          message: "the vendor ended the task; nothing was charged",
          ...(news.taken && { outcome: stoppedOutcome(news.taken) }),
        });
    }
  }

  /** A bad answer fails no task: it is asked again until the deadline. */
  async #again(work: Work, error: unknown): Promise<void> {
    const { task, signal } = work;
    if (signal.aborted) return void (await this.#work.release(work, 0));
    const fault = error instanceof VendorTrouble ? error.fault : undefined;
    if (fault !== undefined) this.#standings.untold(task, fault);
    const failures = task.failure_count + 1;
    if (failures % failuresTold === 0) {
      const fields = { taskId: task.id, vendor: task.vendor, failures, err: error };
      this.#work.warn("a vendor does not say how a task stands", fields);
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

  /** Asks the vendor to stop a task, once. Whether it has ended by that. @throws HttpFailure */
  async #stop({ task, signal }: Work): Promise<boolean> {
    const { tasks } = this.#work.vendorOf(task) ?? {};
    if (!tasks?.canCancel || !tasks.cancel || task.vendor_task_id === null) return false;
    if (await this.#wasStopped(task)) return false;
    const asking = tasks.cancel(task.vendor_task_id, signal);
    this.#work.at("ask.cancel");
    const answer = await asking;
    this.#work.at("told.cancel");
    // What it took is told with how it stands.
    const isEnd = answer === "cancelled" && !(task.is_cancel_billed && tasks.poll !== undefined);
    if (!isEnd) await this.#work.note(task, stopKind, { answer });
    return isEnd;
  }

  async #wasStopped({ id }: TaskRow): Promise<boolean> {
    const sql = "select from task_event where task_id = $1 and kind = $2 limit 1";
    return (await this.#work.options.pool.query(sql, [id, stopKind])).rows.length > 0;
  }
}
