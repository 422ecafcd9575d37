/** Timeout of an answer: time in which the event loop is blocked hardly counts. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { setAnswerTimeout, withTimeout } from "../../../src/core/async.ts";
import { ErrorCode } from "../../../src/core/errors.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

test("an answer that does not arrive times out, and is reported once", () => {
  const onLate = vi.fn<() => void>();
  setAnswerTimeout(onLate, 900);
  vi.advanceTimersByTime(899);
  expect(onLate).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1_000);
  expect(onLate).toHaveBeenCalledTimes(1);
});

test("a timeout that is cleared before never fires", () => {
  const onLate = vi.fn<() => void>();
  const clear = setAnswerTimeout(onLate, 900);
  vi.advanceTimersByTime(899);
  clear();
  vi.advanceTimersByTime(1_000);
  expect(onLate).not.toHaveBeenCalled();
});

test("every received byte restarts the time", () => {
  const onLate = vi.fn<() => void>();
  let isHeard = false;
  setAnswerTimeout(onLate, 900, () => isHeard);
  vi.advanceTimersByTime(700);
  isHeard = true;
  vi.advanceTimersByTime(100);
  isHeard = false;
  vi.advanceTimersByTime(899);
  expect(onLate).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onLate).toHaveBeenCalledTimes(1);
});

test("work that is not done in time fails with 503 SERVICE_UNAVAILABLE", async () => {
  const failed = withTimeout(900, new Promise(() => {})).catch((error: unknown) => error);
  vi.advanceTimersByTime(900);
  expect(await failed).toMatchObject({ code: ErrorCode.SERVICE_UNAVAILABLE });
});
