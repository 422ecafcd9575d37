/** The table of task states and transitions. Pure. */
import { TaskStage, TaskStatus } from "../../gen/uas/task/v1/task_pb.ts";

/**
 * The state of a task:
 * - `queued`: it waits for a worker; no vendor has it.
 * - `submitting`: the intent to submit is durable; the vendor may have received it.
 * - `submit_unknown`: the vendor was called and did not answer; it may have the task.
 * - `running`: the vendor has it.
 * - `finalizing`: the vendor is done; the result is being downloaded.
 * - `completed`, `failed`, `cancelled`: it has ended, and never changes again.
 */
export type TaskState = (typeof taskStates)[number];

/** All states, in the order of a task's life. */
export const taskStates = [
  "queued",
  "submitting",
  "submit_unknown",
  "running",
  "finalizing",
  "completed",
  "failed",
  "cancelled",
] as const;

/**
 * The events of a task:
 * - `claim`: a worker begins to submit it.
 * - `requeue`: it was not submitted after all, and nothing runs at a vendor. Only the process that
 *   claimed it knows this, even if another process has reclaimed it meanwhile.
 * - `lose`: the vendor was called and did not answer.
 * - `resubmit`: it is safe to call the vendor again: its submit is idempotent, or it does not have
 *   the task.
 * - `accept`: the vendor has it.
 * - `produce`: the vendor is done; its result must be downloaded.
 * - `complete`: the result is stored.
 * - `fail`: it ends without a result.
 * - `cancel`: it ends on its client's request.
 */
export type TaskEvent = keyof typeof transitions;

/** The states in which each event can happen, and the resulting state. */
export const transitions = {
  claim: { from: ["queued"], to: "submitting" },
  requeue: { from: ["submitting", "submit_unknown"], to: "queued" },
  lose: { from: ["submitting"], to: "submit_unknown" },
  resubmit: { from: ["submit_unknown"], to: "submitting" },
  accept: { from: ["submitting", "submit_unknown"], to: "running" },
  produce: { from: ["submitting", "submit_unknown", "running"], to: "finalizing" },
  complete: { from: ["finalizing"], to: "completed" },
  fail: {
    from: ["queued", "submitting", "submit_unknown", "running", "finalizing"],
    to: "failed",
  },
  cancel: { from: ["queued", "submitting", "submit_unknown", "running"], to: "cancelled" },
} as const satisfies Readonly<
  Record<string, { readonly from: readonly TaskState[]; readonly to: TaskState }>
>;

/** The status and stage that callers see. */
export interface PublicState {
  readonly status: TaskStatus;
  readonly stage: TaskStage;
}

const progress = TaskStatus.PROGRESS;

const publicStates: Readonly<Record<TaskState, PublicState>> = {
  queued: { status: progress, stage: TaskStage.QUEUED },
  submitting: { status: progress, stage: TaskStage.SUBMITTING },
  submit_unknown: { status: progress, stage: TaskStage.SUBMITTING },
  running: { status: progress, stage: TaskStage.RUNNING },
  finalizing: { status: progress, stage: TaskStage.FINALIZING },
  completed: { status: TaskStatus.COMPLETED, stage: TaskStage.ENDED },
  failed: { status: TaskStatus.FAILED, stage: TaskStage.ENDED },
  cancelled: { status: TaskStatus.CANCELLED, stage: TaskStage.ENDED },
};

/** The status and stage that callers see for a state. */
export function publicState(state: TaskState): PublicState {
  return publicStates[state];
}

/** The state after an event; undefined if the event cannot happen in this state. */
export function nextState(state: TaskState, event: TaskEvent): TaskState | undefined {
  const { from, to } = transitions[event];
  return (from as readonly TaskState[]).includes(state) ? to : undefined;
}

/** The states that an event can happen in. */
export function statesBefore(event: TaskEvent): readonly TaskState[] {
  return transitions[event].from;
}

/** Whether a task in this state has ended. */
export function isEnded(state: TaskState): boolean {
  return publicStates[state].stage === TaskStage.ENDED;
}

/**
 * The range of progress in percent that a vendor's report may set in each state. The database keeps
 * the higher of the old and the new progress.
 */
const progressRanges: Readonly<Record<TaskState, readonly [number, number]>> = {
  queued: [0, 0],
  submitting: [0, 0],
  submit_unknown: [0, 0],
  running: [1, 98],
  finalizing: [99, 99],
  completed: [100, 100],
  failed: [0, 0],
  cancelled: [0, 0],
};

/**
 * Returns the progress to write with a state.
 *
 * @param reported the vendor's progress in percent; any value but a number counts as absent
 */
export function progressIn(state: TaskState, reported?: number): number {
  const [least, most] = progressRanges[state];
  if (reported === undefined || Number.isNaN(reported)) return least;
  return Math.min(most, Math.max(least, Math.floor(reported)));
}

/** Whether a task of this state can be cancelled. */
export function isCancellable(state: TaskState): boolean {
  return nextState(state, "cancel") !== undefined;
}
