import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TaskStage, TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import {
  isCancellable,
  isEnded,
  nextState,
  progressIn,
  publicState,
  statesBefore,
  type TaskEvent,
  type TaskState,
  taskStates,
  transitions,
} from "../../../src/task/state.ts";

const events = Object.keys(transitions) as TaskEvent[];
const anyEvents = fc.array(fc.constantFrom(...events), { maxLength: 30 });
const anyState = fc.constantFrom(...taskStates);

/** Every state of a life that these events make; what cannot happen is left out. */
function live(happening: readonly TaskEvent[]): TaskState[] {
  const states: TaskState[] = ["queued"];
  for (const event of happening) {
    const next = nextState(states.at(-1) ?? "queued", event);
    if (next !== undefined) states.push(next);
  }
  return states;
}

describe("R-TSK-1: the states of a task", () => {
  it("the table of states allows each of its transitions, and no other", () => {
    const rows = taskStates.map((state) => [
      state,
      Object.fromEntries(
        events.flatMap((event) => {
          const next = nextState(state, event);
          return next === undefined ? [] : [[event, next]];
        }),
      ),
    ]);
    expect(Object.fromEntries(rows)).toEqual({
      queued: { claim: "submitting", fail: "failed", cancel: "cancelled" },
      submitting: {
        requeue: "queued",
        lose: "submit_unknown",
        accept: "running",
        produce: "finalizing",
        fail: "failed",
        cancel: "cancelled",
      },
      submit_unknown: {
        requeue: "queued",
        resubmit: "submitting",
        accept: "running",
        produce: "finalizing",
        fail: "failed",
        cancel: "cancelled",
      },
      running: { produce: "finalizing", fail: "failed", cancel: "cancelled" },
      finalizing: { complete: "completed", fail: "failed" },
      completed: {},
      failed: {},
      cancelled: {},
    });
  });

  it("a task never leaves a final state", () => {
    fc.assert(
      fc.property(anyEvents, (happening) => {
        const ends = live(happening).filter(isEnded);
        expect(ends.length).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("a task can always come to an end, and is cancelled only where the table allows it", () => {
    fc.assert(
      fc.property(anyEvents, (happening) => {
        const last = live(happening).at(-1) ?? "queued";
        expect(isEnded(last) || nextState(last, "fail") === "failed").toBe(true);
        expect(isCancellable(last)).toBe(statesBefore("cancel").includes(last));
      }),
    );
  });

  it("a task that a vendor has accepted, or is done with, is never submitted again (R-TSK-7)", () => {
    fc.assert(
      fc.property(anyEvents, (happening) => {
        const states = live(happening);
        const first = states.findIndex((state) => state === "running" || state === "finalizing");
        const after = first < 0 ? [] : states.slice(first);
        expect(after).not.toContain("queued");
        expect(after).not.toContain("submitting");
      }),
    );
  });

  it("a task shows exactly the four documented statuses, and one that has ended as such", () => {
    const words = new Set(taskStates.map((state) => publicState(state).status));
    expect(words).toEqual(
      new Set([TaskStatus.PROGRESS, TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED]),
    );
    for (const state of taskStates) {
      const { status, stage } = publicState(state);
      expect(isEnded(state)).toBe(status !== TaskStatus.PROGRESS);
      expect(isEnded(state)).toBe(stage === TaskStage.ENDED);
    }
  });

  it("a task has a progress of 0 to 100 whatever a vendor says, and 100 exactly when it is completed", () => {
    fc.assert(
      fc.property(anyState, fc.option(fc.double(), { nil: undefined }), (state, told) => {
        const progress = progressIn(state, told);
        expect(Number.isInteger(progress)).toBe(true);
        expect(progress).toBeGreaterThanOrEqual(0);
        expect(progress === 100).toBe(state === "completed");
        expect(progress).toBeLessThanOrEqual(100);
      }),
    );
  });
});
