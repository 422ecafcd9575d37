/** Fetches what vendors have made, before it is gone there. */
import { setTimeout as delay } from "node:timers/promises";
import { taskFetchesMax } from "../config/limits.ts";
import { ErrorCode } from "../core/errors.ts";
import { ResultFailure, type StoredResult } from "../result/result.ts";
import type { TaskOutcome, VendorFile } from "../vendor/task.ts";
import type { StoredFileJson } from "./task-row.ts";
import type { TaskWork, Work } from "./task-work.ts";

const goneMessage = "the result could not be fetched from the vendor; nothing was charged";

/** The steps of `finalizing`. */
export class Finalizing {
  readonly #work: TaskWork;

  constructor(work: TaskWork) {
    this.#work = work;
  }

  /** Copies a result and ends the task. */
  async finalize(work: Work, outcome: TaskOutcome): Promise<void> {
    // What only this process has is not left to others as long as that can be helped.
    const isHere = outcome.files.some(({ bytes }) => bytes !== undefined) && !this.#canAsk(work);
    const signal = isHere ? work.lastSignal : work.signal;
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
    await this.#work.complete(work, measured(outcome, stored), files, expireTime);
  }

  /** Goes on with a task whose process is gone: its vendor is asked again for what it has made. */
  async recover(work: Work): Promise<void> {
    const { task, signal } = work;
    let outcome: TaskOutcome | undefined;
    try {
      outcome = await this.#askAgain(work);
    } catch (error) {
      if (signal.aborted) return void (await this.#work.release(work, 0));
      this.#work.warn("a result could not be asked for", { taskId: task.id, err: error });
    }
    if (outcome !== undefined) return this.finalize(work, outcome);
    const failures = task.failure_count + 1;
    if (this.#canAsk(work) && failures < taskFetchesMax) {
      const pause = this.#work.pause(task.failure_count);
      return void (await this.#work.release(work, pause, { failure_count: failures }));
    }
    const { RESULT_UNAVAILABLE: code } = ErrorCode;
    // The vendor was done with it, and takes its money.
    await this.#work.fail(work, { code, message: goneMessage, outcome: { files: [] } });
  }

  /** One after the other: a task's files are not worth more of the machine than another task's. */
  async #store({ task }: Work, file: VendorFile, signal: AbortSignal): Promise<StoredResult> {
    const { url, bytes, headers, redirectHosts, contentType } = file;
    const vendorUrl = this.#work.vendorOf(task)?.baseUrl;
    const { id: taskId, account_id: accountId } = task;
    for (let count = 1; ; count++) {
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
        this.#work.at("file.stored");
        return stored;
      } catch (error) {
        const isFinal = error instanceof ResultFailure && error.isFinal;
        if (isFinal || signal.aborted || count === taskFetchesMax) throw error;
        await delay(this.#work.pause(count - 1), undefined, { signal });
      }
    }
  }

  /** Whether the vendor tells again what it made. */
  #canAsk({ task }: Work): boolean {
    const tasks = this.#work.vendorOf(task)?.tasks;
    if (tasks === undefined) return false;
    const canPoll = tasks.poll !== undefined && task.vendor_task_id !== null;
    return canPoll || tasks.resubmit !== "blind";
  }

  async #askAgain({ task, signal, lease }: Work): Promise<TaskOutcome | undefined> {
    const tasks = this.#work.vendorOf(task)?.tasks;
    const { vendor_task_id: vendorTaskId, attempt_token: attemptToken } = task;
    if (tasks === undefined || attemptToken === null) return undefined;
    if (tasks.poll !== undefined && vendorTaskId !== null) {
      const news = await tasks.poll(vendorTaskId, signal, task.type);
      return news.status === "completed" ? news.outcome : undefined;
    }
    if (tasks.resubmit === "blind" || !lease.isSafe()) return undefined;
    const { vendor_model: model, type, params } = await this.#work.whole(task);
    const told =
      tasks.resubmit === "findable"
        ? await tasks.find?.(attemptToken, signal)
        : await tasks.submit({ attemptToken, model, type, params, signal });
    return told && "done" in told ? told.done : undefined;
  }
}

/** What was made, by how long its files are where the vendor does not say: films, and sounds where there is no film. */
function measured(outcome: TaskOutcome, stored: readonly StoredResult[]): TaskOutcome {
  if (outcome.units?.seconds !== undefined) return outcome;
  const timed = stored.filter(({ seconds }) => seconds !== undefined);
  const films = timed.filter(({ contentType }) => contentType.startsWith("video/"));
  const counted = films.length > 0 ? films : timed;
  if (counted.length === 0) return outcome;
  const seconds = counted.reduce((sum, each) => sum + (each.seconds ?? 0), 0);
  return { ...outcome, units: { ...outcome.units, seconds } };
}
