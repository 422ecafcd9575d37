import { expect, test, vi } from "vitest";
import { LeaseLoop } from "../../../src/db/lease-loop.ts";

/** Never reached in these tests: they wake the loop themselves. */
const scanMs = 3_600_000;

test("a wake-up during a claim is followed by another claim", async () => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const claim = vi.fn(() => gates[claim.mock.calls.length - 1]?.promise ?? Promise.resolve());
  const loop = new LeaseLoop({ claim, scanMs, onError: vi.fn() });
  loop.wake();
  loop.wake();
  loop.wake();
  expect(claim).toHaveBeenCalledTimes(1);
  gates[0]?.resolve();
  await vi.waitFor(() => expect(claim).toHaveBeenCalledTimes(2));
  gates[1]?.resolve();
  await loop.stop();
  expect(claim).toHaveBeenCalledTimes(2);
});

test("a claim that fails is reported, and loses no wake-up", async () => {
  const onError = vi.fn();
  const error = new Error("away");
  const claim = vi.fn(async () => {
    if (claim.mock.calls.length > 1) return;
    loop.wake();
    throw error;
  });
  const loop = new LeaseLoop({ claim, scanMs, onError });
  loop.wake();
  await vi.waitFor(() => expect(claim).toHaveBeenCalledTimes(2));
  expect(onError.mock.calls).toEqual([[error]]);
  await loop.stop();
});

test("a start scans before its first claim", async () => {
  const order: string[] = [];
  const loop = new LeaseLoop({
    scan: async () => void order.push("scan"),
    claim: async () => void order.push("claim"),
    scanMs,
    onError: vi.fn(),
  });
  loop.start();
  await vi.waitFor(() => expect(order).toEqual(["scan", "claim"]));
  await loop.stop();
});

test("a stopped loop claims no more, and drains the work that it has begun", async () => {
  const claim = vi.fn(async () => {});
  const loop = new LeaseLoop({ claim, scanMs, onError: vi.fn() });
  const work = Promise.withResolvers<void>();
  loop.track(work.promise);
  await loop.stop();
  loop.wake();
  expect(claim).not.toHaveBeenCalled();
  let isDrained = false;
  const drained = loop.drained().then(() => void (isDrained = true));
  await Promise.resolve();
  expect(isDrained).toBe(false);
  work.resolve();
  await drained;
});
