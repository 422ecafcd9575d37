/** The count of running calls: what a stopping gateway waits for. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { freeWorkAccountMax } from "../../../src/core/limits.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { RunningCalls } from "../../../src/calls/running-calls.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

/** Whether a promise has resolved by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol("pending");
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending;
}

describe("running calls", () => {
  it("running calls are counted", () => {
    const calls = new RunningCalls();
    calls.enter();
    calls.enter();
    calls.leave();
    expect(calls).toMatchObject({ count: 1, isOpen: true });
  });

  it("drain at once where none runs, and new ones are then refused with 503 and retry-after", async () => {
    const calls = new RunningCalls();
    await calls.drain(60_000);
    expect(calls.isOpen).toBe(false);
    expect(() => calls.enter()).toThrow(
      expect.objectContaining({ code: ErrorCode.SERVICE_UNAVAILABLE, retryAfterSeconds: 1 }),
    );
    expect(calls.count).toBe(0);
  });

  it("running calls are refused from the start of a drain, which ends with the last running call", async () => {
    const calls = new RunningCalls();
    calls.enter();
    calls.enter();
    const drained = calls.drain(60_000);
    expect(() => calls.enter()).toThrow();
    calls.leave();
    expect(await isSettled(drained)).toBe(false);
    calls.leave();
    expect(await isSettled(drained)).toBe(true);
  });

  it("drain no longer than the timeout, and can be drained again", async () => {
    const calls = new RunningCalls();
    calls.enter();
    const first = calls.drain(1_000);
    vi.advanceTimersByTime(999);
    expect(await isSettled(first)).toBe(false);
    vi.advanceTimersByTime(1);
    expect(await isSettled(first)).toBe(true);
    const second = calls.drain(1_000);
    calls.leave();
    expect(await isSettled(second)).toBe(true);
  });

  it("running calls end every pending drain, also where there are two", async () => {
    const calls = new RunningCalls();
    calls.enter();
    const both = [calls.drain(60_000), calls.drain(60_000)];
    calls.leave();
    for (const drained of both) expect(await isSettled(drained)).toBe(true);
  });

  it("free work is no call, but a drain waits for it and refuses more of it", async () => {
    const calls = new RunningCalls(1);
    const work = Promise.withResolvers<number>();
    const running = calls.runFree("account", () => work.promise);
    expect(calls.count).toBe(0);
    calls.enter();
    calls.leave();
    const drained = calls.drain(60_000);
    await expect(calls.runFree("other", async () => 1)).rejects.toThrow("stopping");
    expect(await isSettled(drained)).toBe(false);
    work.resolve(7);
    expect(await running).toBe(7);
    expect(await isSettled(drained)).toBe(true);
  });

  it("free work beyond the share of its account is refused with 429, while other accounts have theirs (R-LIM-2)", async () => {
    const calls = new RunningCalls();
    const work = Promise.withResolvers<void>();
    const run = (accountId: string) => calls.runFree(accountId, () => work.promise);
    const share = Array.from({ length: freeWorkAccountMax }, () => run("greedy"));
    await expect(run("greedy")).rejects.toMatchObject({
      code: ErrorCode.RATE_LIMIT_EXCEEDED,
      retryAfterSeconds: 1,
    });
    const other = run("other");
    work.resolve();
    await Promise.all([...share, other]);
    await run("greedy");
  });

  it("free work that fails gives its share back", async () => {
    const calls = new RunningCalls();
    for (let at = 0; at <= freeWorkAccountMax; at++)
      await expect(
        calls.runFree("account", () => Promise.reject(new Error(`failed ${at}`))),
      ).rejects.toThrow(`failed ${at}`);
  });
});
