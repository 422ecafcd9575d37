/** Deadlines that leave nothing behind. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { limitTime } from "../../../src/core/async.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("a time limit that is disposed of keeps neither its timer nor a listener", () => {
  const other = new AbortController();
  const remove = vi.spyOn(other.signal, "removeEventListener");
  {
    using limit = limitTime(30 * 60_000, [other.signal]);
    expect(limit.signal.aborted).toBe(false);
    expect(vi.getTimerCount()).toBe(1);
  }
  expect(vi.getTimerCount()).toBe(0);
  expect(remove).toHaveBeenCalledTimes(1);
});

it("an exceeded time limit is reported", () => {
  using limit = limitTime(1_000, []);
  vi.advanceTimersByTime(1_000);
  expect(limit.isOverdue()).toBe(true);
  expect(limit.signal.reason).toMatchObject({ name: "TimeoutError" });
});

it("a time limit passes on the reason of another signal, also of one that was aborted before", () => {
  const [before, later] = [new AbortController(), new AbortController()];
  using limit = limitTime(1_000, [later.signal]);
  later.abort("later");
  before.abort("before");
  using late = limitTime(1_000, [before.signal]);
  expect(limit.signal.reason).toBe("later");
  expect(late.signal.reason).toBe("before");
  expect(limit.isOverdue() || late.isOverdue()).toBe(false);
});
