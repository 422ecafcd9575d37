import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { periodic } from "../../../src/core/periodic.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("a job runs at its start and then once in every period", async () => {
  const run = vi.fn(async () => {});
  const jobs = periodic([{ run, everyMs: 100, onError: vi.fn() }]);
  jobs.start();
  jobs.start();
  expect(run).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(250);
  expect(run).toHaveBeenCalledTimes(3);
  await jobs.stop();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(run).toHaveBeenCalledTimes(3);
});

test("a job with a later first run does not run at the start", async () => {
  const [audit, recovery] = [vi.fn(async () => {}), vi.fn(async () => {})];
  const onError = vi.fn();
  const jobs = periodic([
    { run: audit, everyMs: 1_000, firstMs: 100, onError },
    { run: recovery, everyMs: 100, firstMs: 100, onError },
  ]);
  jobs.start();
  await vi.advanceTimersByTimeAsync(99);
  expect([audit, recovery].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  await vi.advanceTimersByTimeAsync(1);
  expect([audit, recovery].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
  await vi.advanceTimersByTimeAsync(900);
  expect([audit, recovery].map(({ mock }) => mock.calls.length)).toEqual([2, 10]);
  await jobs.stop();
});

test("a failed run is reported, and the next one follows in its time", async () => {
  const error = new Error("away");
  const onError = vi.fn();
  const run = vi.fn(() => Promise.reject(error));
  const jobs = periodic([{ run, everyMs: 100, onError }]);
  jobs.start();
  await vi.advanceTimersByTimeAsync(100);
  expect(onError.mock.calls).toEqual([[error], [error]]);
  await jobs.stop();
});

test("a run that takes longer than its period is not started twice, and a stop waits for it", async () => {
  const gate = Promise.withResolvers<void>();
  const run = vi.fn(() => gate.promise);
  const jobs = periodic([{ run, everyMs: 100, onError: vi.fn() }]);
  jobs.start();
  await vi.advanceTimersByTimeAsync(500);
  expect(run).toHaveBeenCalledTimes(1);
  let isStopped = false;
  const stopped = jobs.stop().then(() => void (isStopped = true));
  await vi.advanceTimersByTimeAsync(0);
  expect(isStopped).toBe(false);
  gate.resolve();
  await stopped;
});
