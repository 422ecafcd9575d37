import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Arrivals } from "../../../bench/arrivals.ts";

/** A connection that remembers when its requests were due. */
class FakeConnection {
  readonly asked: number[] = [];

  ask(dueMs: number): void {
    this.asked.push(dueMs - startMs);
  }
}

let startMs = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  startMs = Math.ceil(performance.now());
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the arrivals of an open loop", () => {
  it("requests are due at fixed times, each at the connection that was free for longest", () => {
    const [a, b] = [new FakeConnection(), new FakeConnection()];
    const arrivals = new Arrivals<FakeConnection>(500);
    arrivals.onFree(a);
    arrivals.onFree(b);
    arrivals.start();
    vi.advanceTimersByTime(1);
    arrivals.onFree(a);
    vi.advanceTimersByTime(3);
    expect([a.asked, b.asked]).toEqual([[0, 4], [2]]);
    expect(arrivals.stop()).toEqual([]);
  });

  it("a request that had to wait for a connection keeps the time at which it was due", () => {
    const slow = new FakeConnection();
    const arrivals = new Arrivals<FakeConnection>(500);
    arrivals.onFree(slow);
    arrivals.start();
    vi.advanceTimersByTime(100);
    expect(slow.asked).toEqual([0]);
    arrivals.onFree(slow);
    expect(slow.asked).toEqual([0, 2]);
    const waiting = arrivals.stop();
    expect(waiting).toHaveLength(49);
    expect(waiting[0]).toBe(startMs + 4);
  });
});
