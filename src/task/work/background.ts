/**
 * Runs background responses as TEXT tasks: starts, finds and cancels them for the inference room.
 */
import { idempotencyHeader } from "../../core/idempotency-key.ts";
import type { BackgroundStatus, BackgroundTasks } from "../../responses/background/tasks.ts";
import type { Cancel } from "./cancel.ts";
import { noSuchTask } from "../failures.ts";
import type { TaskFeed } from "../read/feed.ts";
import { poll, type WaitSlots } from "../read/reads.ts";
import { isEnded, type TaskState } from "../state.ts";
import type { TaskStore, TaskSummary } from "../store.ts";
import { fingerprint, readIdempotencyKey } from "../submit/submit-form.ts";
import type { Submit } from "../submit/submit.ts";

/** Options of {@link createBackgroundTasks}. */
export interface BackgroundTasksOptions {
  readonly submit: Submit;
  readonly cancel: Cancel;
  readonly store: TaskStore;
  readonly feed: TaskFeed;
  readonly waitSlots: WaitSlots;
}

/** Maximum time a cancel waits for the end of its task: the process that runs it reacts at once. */
const cancelWaitMs = 5_000;

/** Creates the background tasks. */
export function createBackgroundTasks(options: BackgroundTasksOptions): BackgroundTasks {
  const { submit, cancel, store, feed, waitSlots } = options;
  return {
    async start({
      id,
      caller,
      requestId,
      model,
      units,
      params,
      fingerprinted,
      writeAlongside,
      ...given
    }) {
      const callbackId = readIdempotencyKey(given.idempotencyKey ?? null);
      const what = {
        modelKey: model.key,
        callbackUrl: "",
        field: "response",
        params: fingerprinted,
      };
      const read = {
        taskModel: { model, units: () => units },
        params,
        callbackId,
        callbackIdName: idempotencyHeader,
        callbackUrl: null,
        fingerprint: fingerprint(what),
      };
      const { task, replayed } = await submit(read, { caller, requestId }, { id, writeAlongside });
      return { taskId: task.id, replayed };
    },

    changes: (taskId) => feed.subscribe(taskId),

    async find(accountId, taskId) {
      const task = await store.find(taskId, accountId);
      return task && statusOf(task);
    },

    async cancel(accountId, taskId) {
      const task = await cancel(taskId, accountId);
      if (isEnded(task.state)) return statusOf(task);
      const ended = await poll(
        {
          accountId,
          taskId,
          read: () => store.find(taskId, accountId),
          waitMs: cancelWaitMs,
          knows: ({ state }) => !isEnded(state),
          signal: AbortSignal.timeout(cancelWaitMs),
        },
        { feed, waitSlots },
      );
      if (ended === undefined) throw noSuchTask();
      return statusOf(ended);
    },
  };
}

const statuses: Readonly<Record<TaskState, BackgroundStatus["status"]>> = {
  queued: "queued",
  submitting: "in_progress",
  submit_unknown: "in_progress",
  running: "in_progress",
  finalizing: "in_progress",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

function statusOf({ state, error_code: code, error: message }: TaskSummary): BackgroundStatus {
  const status = statuses[state];
  return code === null ? { status } : { status, error: { code, message: message ?? "" } };
}
