/** Runs responses in the background as TEXT tasks: what inference is given to start, find and end them by. */
import type { BackgroundStanding, BackgroundTasks } from "../inference/background/tasks.ts";
import type { Cancel } from "./cancel.ts";
import { noSuchTask } from "./failures.ts";
import type { TaskFeed } from "./feed.ts";
import { fingerprint, checkIdempotencyKey, idempotencyHeader } from "./submit-form.ts";
import { isEnded, type TaskState } from "./state.ts";
import type { SeenTask, TaskStore } from "./store.ts";
import type { Submit } from "./submit.ts";
import { type Parking, poll } from "./reads.ts";

/** What {@link createBackgroundTasks} needs. */
export interface BackgroundTasksOptions {
  readonly submit: Submit;
  readonly cancel: Cancel;
  readonly store: TaskStore;
  readonly feed: TaskFeed;
  readonly parking: Parking;
}

/** How long is waited for the end of one that is cancelled, in milliseconds: who makes it hears of it at once. */
const cancelWaitMs = 5_000;

/** Makes it. */
export function createBackgroundTasks(options: BackgroundTasksOptions): BackgroundTasks {
  const { submit, cancel, store, feed, parking } = options;
  return {
    async start({ id, caller, requestId, model, units, params, asked, within, ...given }) {
      const callbackId = checkIdempotencyKey(given.idempotencyKey ?? null);
      const what = { modelKey: model.key, callbackUrl: "", field: "response", params: asked };
      const read = {
        taskModel: { model, units: () => units },
        params,
        callbackId,
        callbackIdName: idempotencyHeader,
        callbackUrl: null,
        fingerprint: fingerprint(what),
      };
      const { task, replayed } = await submit(read, { caller, requestId }, { id, within });
      return { taskId: task.id, replayed };
    },

    changes: (taskId) => feed.subscribe(taskId),

    async find(accountId, taskId) {
      const task = await store.find(taskId, accountId);
      return task && standingOf(task);
    },

    async cancel(accountId, taskId) {
      const task = await cancel(taskId, accountId);
      if (isEnded(task.state)) return standingOf(task);
      const ended = await poll(
        {
          accountId,
          taskId,
          read: () => store.find(taskId, accountId),
          waitMs: cancelWaitMs,
          knows: ({ state }) => !isEnded(state),
          signal: AbortSignal.timeout(cancelWaitMs),
        },
        { feed, parking },
      );
      if (ended === undefined) throw noSuchTask();
      return standingOf(ended);
    },
  };
}

const statuses: Readonly<Record<TaskState, BackgroundStanding["status"]>> = {
  queued: "queued",
  submitting: "in_progress",
  submit_unknown: "in_progress",
  running: "in_progress",
  finalizing: "in_progress",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
};

function standingOf({ state, error_code: code, error: message }: SeenTask): BackgroundStanding {
  const status = statuses[state];
  return code === null ? { status } : { status, error: { code, message: message ?? "" } };
}
