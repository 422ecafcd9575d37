/** Asks what vendors took for tasks that have ended without a charge: it is the operator's to bear. */
import {
  type TaskNews,
  type TaskOutcome,
  type VendorTasks,
  VendorTrouble,
} from "../vendor/task.ts";
import { stoppedOutcome } from "./charge.ts";
import { askHint } from "./vendor-notifications.ts";
import type { Standings } from "./vendor-health.ts";
import type { TaskRow } from "./task-row.ts";
import type { TaskWork, Work } from "./task-work.ts";

/** How much rarer than others they are looked at: nobody waits for them. */
const rarer = 4;

/** Of how many looks an operator is told of one that came to nothing. */
const looksTold = 10;

/** $1: id, $2: fence, $3: its hints as they were, $4: the pause in milliseconds. */
const releaseSql = `
  update task set lease_until = null, poll_count = poll_count + 1, next_time = clock_timestamp()
    + case when hints <> $3 then 0 else $4 end * interval '1 ms'
  where id = $1 and fence = $2 and is_trailing`;

/** What its vendor took something for; `undefined`: nothing. */
function madeOf(news: TaskNews): TaskOutcome | undefined {
  if (news.status === "completed") return news.outcome;
  return news.status === "cancelled" && news.taken ? stoppedOutcome(news.taken) : undefined;
}

/** The steps of tasks that are over, but maybe not at their vendors. */
export class Trailing {
  readonly #work: TaskWork;

  readonly #standings: Standings;

  constructor(work: TaskWork, standings: Standings) {
    this.#work = work;
    this.#standings = standings;
  }

  /** Asks how it stands there. */
  async look(work: Work): Promise<void> {
    const { task, signal } = work;
    const ageMs = Date.now() - (task.finish_time?.getTime() ?? 0);
    if (ageMs > this.#work.timings.trailMs) return this.#giveUp(work);
    const { slots } = this.#work;
    if (!slots.ask(task.vendor)) return this.#release(work, slots.plan(task.vendor, 0));
    let news: TaskNews | undefined;
    try {
      news = await this.#ask(work, this.#work.vendorOf(task)?.tasks);
    } catch (error) {
      if (signal.aborted) return this.#release(work, 0);
      this.#tell(work, error);
      return this.#release(work);
    }
    if (news === undefined || news.status === "running") return this.#release(work);
    await this.#work.endTrail(work, madeOf(news));
  }

  #tell({ task }: Work, error: unknown): void {
    const { id: taskId, vendor } = task;
    const fault = error instanceof VendorTrouble ? error.fault : undefined;
    if (fault !== undefined) this.#standings.untold(task, fault);
    if (task.poll_count % looksTold !== 0) return;
    this.#work.warn("a vendor does not say what it took for a task", {
      taskId,
      vendor,
      err: error,
    });
  }

  /** @returns `undefined`: nobody here knows its vendor @throws HttpFailure; VendorTrouble */
  async #ask(
    { task, signal }: Work,
    tasks: VendorTasks | undefined,
  ): Promise<TaskNews | undefined> {
    if (tasks?.poll === undefined) return undefined;
    const vendorTaskId = task.vendor_task_id ?? (await askHint(tasks, task, signal));
    // What is somebody else's there is nothing of ours.
    if (vendorTaskId === undefined) return { status: "cancelled" };
    const asking = tasks.poll(vendorTaskId, signal, task.type);
    this.#work.at("ask.poll");
    const news = await asking;
    this.#work.at("told.poll");
    return news;
  }

  async #giveUp(work: Work): Promise<void> {
    const { id: taskId, vendor, attempt_token: attemptToken } = work.task;
    this.#work.warn("what a vendor took for a task is not known: compare with its invoice", {
      taskId,
      vendor,
      attemptToken,
    });
    await this.#work.endTrail(work);
  }

  async #release({ task }: Work, ms = this.#pauseOf(task)): Promise<void> {
    await this.#work.options.pool.query(releaseSql, [task.id, task.fence, task.hints, ms]);
  }

  #pauseOf({ vendor, poll_count: polls }: TaskRow): number {
    return this.#work.slots.plan(vendor, this.#work.pause(polls) * rarer);
  }
}
