/** The clock of a process, beside a database whose clock says something else. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CorrectedClock } from "../../../src/db/corrected-clock.ts";

const startMs = Date.parse("2026-03-10T12:00:00Z");
const dayMs = 86_400_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "performance"], now: startMs }));
afterEach(() => void vi.useRealTimers());

/** Looks at a database whose clock says so, over a connection that takes this long. */
function look(clock: CorrectedClock, databaseMs: number, roundTripMs = 0): void {
  const sentMs = performance.now();
  vi.advanceTimersByTime(roundTripMs);
  clock.learn({ databaseMs, sentMs, receivedMs: performance.now() });
}

/** Sets the clock of the process, as an operator does: no time passes by the monotonic clock. */
function setOwn(ms: number): void {
  vi.setSystemTime(ms);
}

/** A corrected clock, and the warnings it gave. */
function openClock() {
  const warnings: object[] = [];
  const clock = new CorrectedClock({ warn: (_message, fields) => void warnings.push(fields) });
  return { clock, warnings };
}

test.each([400, -400])(
  "a process whose clock is off by %i days has the database's time",
  (days) => {
    const { clock, warnings } = openClock();
    look(clock, startMs - days * dayMs);
    expect(clock.now()).toBe(startMs - days * dayMs);
    vi.advanceTimersByTime(90_000);
    expect(clock.now()).toBe(startMs - days * dayMs + 90_000);
    expect(warnings).toEqual([{ aheadSeconds: days * 86_400 }]);
  },
);

test("a clock that differs by less than 5 seconds is left as it is", () => {
  const { clock, warnings } = openClock();
  look(clock, startMs + 4_900);
  expect(clock.now()).toBe(startMs);
  look(clock, startMs - 4_900);
  expect(clock.now()).toBe(startMs);
  expect(warnings).toEqual([]);
});

test("half the round trip of a look counts as passed", () => {
  const { clock } = openClock();
  look(clock, startMs + dayMs, 2_000);
  expect(clock.now()).toBe(startMs + dayMs + 1_000);
});

test("a look over a slow connection does not move a time that may be right", () => {
  const { clock } = openClock();
  look(clock, startMs + dayMs);
  look(clock, startMs + dayMs, 8_000);
  expect(clock.now()).toBe(startMs + dayMs + 8_000);
});

test.each([400, -400])(
  "a step of the process's clock by %i days changes no time before the next look, nor after it",
  (days) => {
    const { clock } = openClock();
    look(clock, startMs);
    setOwn(startMs + days * dayMs);
    expect(clock.now()).toBe(startMs);
    expect(clock.isOff).toBe(true);
    vi.advanceTimersByTime(1_000);
    look(clock, startMs + 1_000);
    expect(clock.now()).toBe(startMs + 1_000);
  },
);

test("a process whose clock is set right goes by it again, without a jump", () => {
  const { clock } = openClock();
  look(clock, startMs - dayMs);
  setOwn(startMs - dayMs + 3);
  expect(clock.now()).toBe(startMs - dayMs + 3);
  expect(clock.isOff).toBe(false);
});

test("a machine that slept has the right time with the next look", () => {
  const { clock, warnings } = openClock();
  look(clock, startMs);
  setOwn(startMs + dayMs);
  expect(clock.isOff).toBe(true);
  look(clock, startMs + dayMs);
  expect(clock.now()).toBe(startMs + dayMs);
  expect(clock.isOff).toBe(false);
  expect(warnings).toEqual([]);
});

test("a database clock that is set a day back takes the processes with it", () => {
  const { clock } = openClock();
  look(clock, startMs);
  look(clock, startMs - dayMs);
  expect(clock.now()).toBe(startMs - dayMs);
});

test("the operator is told once that the clocks differ, and again after they agreed", () => {
  const { clock, warnings } = openClock();
  look(clock, startMs + dayMs);
  look(clock, startMs + dayMs);
  expect(warnings).toHaveLength(1);
  setOwn(startMs + dayMs);
  look(clock, startMs + dayMs);
  setOwn(startMs);
  look(clock, startMs + dayMs);
  expect(warnings).toHaveLength(2);
});

test("the ids of a process whose clock steps 400 days ahead and back begin with the right time, in order", () => {
  const { clock } = openClock();
  look(clock, startMs);
  const ids = [clock.newId()];
  setOwn(startMs + 400 * dayMs);
  ids.push(clock.newId());
  setOwn(startMs);
  ids.push(clock.newId());
  expect(ids).toEqual(ids.toSorted());
  const stamp = startMs.toString(16).padStart(12, "0");
  expect(ids.map((id) => id.replace("-", "").slice(0, 12))).toEqual([stamp, stamp, stamp]);
});
