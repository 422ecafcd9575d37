/** The results of tasks, copied before their vendors delete them. */
import { ErrorCode } from "../../core/errors.ts";
import type { TaskOutcome, VendorFile } from "../../provider/task.ts";
import type { TaskWork, Work } from "./task-work.ts";
import type { StoredFileJson } from "../task-row.ts";
import { setTimeout as delay } from "node:timers/promises";
import { taskFetchesMax } from "../../core/limits.ts";
import { isDatabaseLost } from "../../core/database-lost.ts";
import { ResultFailure, type StoredResult } from "../../result/result.ts";

const goneMessage = "the result could not be fetched from the vendor; nothing was charged";

/** The steps of `finalizing`. */
export class FinalizeSteps {
  readonly #work: TaskWork;

  constructor(work: TaskWork) {
    this.#work = work;
  }

  /** Copies a result and ends the task. */
  async finalize(work: Work, outcome: TaskOutcome): Promise<void> {
    // Bytes that only this process has cannot be downloaded by another one. So this process may use
    // the grace time, and continues if its lease expired during an outage of the database.
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

  /** Continues a task whose process died: requests the result from the vendor again. */
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
    // Its process may be alive and have the result, after an outage of the database: it has this
    // time to store it.
    if (failures < (canAsk ? taskFetchesMax : 2)) {
      const pause = canAsk ? this.#work.pause(task.failure_count) : this.#work.timings.settleMs;
      return void (await this.#work.release(work, pause, { failure_count: failures }));
    }
    const { RESULT_UNAVAILABLE: code } = ErrorCode;
    // The vendor had completed the task, and charges for it.
    await this.#work.fail(work, { code, message: goneMessage, outcome: { files: [] } });
  }

  /**
   * Stores one file. Files of a task are stored in sequence, so that no task uses more of the
   * machine than others.
   */
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
        // An unreachable database is no failure of the result.
        if (!isDatabaseLost(error)) count++;
        await delay(this.#work.pause(count - 1), undefined, { signal });
      }
    }
  }

  /** Whether the result can be requested from the vendor again. */
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

/**
 * Adds the length of the files if the vendor does not report seconds: of videos, or of audio if
 * there are no videos.
 */
function withMeasuredSeconds(outcome: TaskOutcome, stored: readonly StoredResult[]): TaskOutcome {
  if (outcome.units?.seconds !== undefined) return outcome;
  const timed = stored.filter(({ seconds }) => seconds !== undefined);
  const videos = timed.filter(({ contentType }) => contentType.startsWith("video/"));
  const counted = videos.length > 0 ? videos : timed;
  if (counted.length === 0) return outcome;
  const seconds = counted.reduce((sum, each) => sum + (each.seconds ?? 0), 0);
  return { ...outcome, units: { ...outcome.units, seconds } };
}
