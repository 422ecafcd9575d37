/**
 * The queue of calls that wait for a slot: bounded, fair between keys, and without calls whose
 * clients disconnect.
 */
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { CancelSource } from "../../../src/core/cancel-signal.ts";
import {
  AdmissionQueues,
  type QueuedRequest,
  waitingMax,
} from "../../../src/limits/admission-queue.ts";
import type {
  LimitedRequest,
  LimitRefusal,
  LimitSubject,
  Ticket,
} from "../../../src/limits/limiter.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const noUse = { requests: 0, tokens: 0 };

function subject(kind: "key" | "account", limits: Partial<LimitSubject["limits"]>): LimitSubject {
  return {
    name: kind,
    kind,
    limits: { rpm: undefined, tpm: undefined, concurrency: undefined, ...limits },
  };
}

/** A limiter of calls at once, whose answers take a millisecond. */
class Places {
  running = 0;
  most = 0;
  readonly #refusal: LimitRefusal;
  readonly #limit: number;

  constructor(limit: number, refusal: Partial<LimitRefusal> = {}) {
    this.#limit = limit;
    this.#refusal = {
      ...{ isAdmitted: false, subject: subject("account", { concurrency: limit }) },
      ...{ reason: "concurrency", retryMs: 1_000, used: noUse },
      ...refusal,
    };
  }

  async admit(asked: LimitedRequest): Promise<Ticket | LimitRefusal> {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (this.running >= this.#limit) return this.#refusal;
    this.running++;
    this.most = Math.max(this.most, this.running);
    return { ...asked, isAdmitted: true, slice: 0n, used: [noUse] };
  }

  end(): void {
    this.running--;
  }
}

function request(keyId: string, more: Partial<QueuedRequest> = {}): QueuedRequest {
  return {
    ...{ subjects: [subject("account", {})], tokens: 0, accountId: "a", keyId, waitMs: 5_000 },
    signal: new CancelSource(),
    ...more,
  };
}

it("a call waits until another one ends, and no longer than it may", async () => {
  const places = new Places(1);
  const queues = new AdmissionQueues(places);
  await Promise.all([queues.admit(request("k")), vi.advanceTimersByTimeAsync(1)]);
  const [second, third] = [queues.admit(request("k")), queues.admit(request("k"))];
  await vi.advanceTimersByTimeAsync(4_000);
  expect(queues.waiting("a")).toBe(2);
  places.end();
  queues.onEnd("a");
  await vi.advanceTimersByTimeAsync(1);
  expect((await second).isAdmitted).toBe(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect((await third).isAdmitted).toBe(false);
  expect(queues.waiting("a")).toBe(0);
});

it("a call that another process's end admits is tried again without a notice", async () => {
  const places = new Places(1);
  const queues = new AdmissionQueues(places);
  await Promise.all([queues.admit(request("k")), vi.advanceTimersByTimeAsync(1)]);
  const second = queues.admit(request("k"));
  await vi.advanceTimersByTimeAsync(10);
  places.end();
  await vi.advanceTimersByTimeAsync(200);
  expect((await second).isAdmitted).toBe(true);
});

it("a call that cannot have room in time is refused at once", async () => {
  const hopeless: Partial<LimitRefusal>[] = [
    { reason: "requests", retryMs: 5_001 },
    { reason: "tokens", retryMs: 10, subject: subject("key", { tpm: 9 }) },
  ];
  for (const refusal of hopeless) {
    const queues = new AdmissionQueues(new Places(0, refusal));
    const verdict = queues.admit(request("k", { tokens: 10 }));
    await vi.advanceTimersByTimeAsync(1);
    expect((await verdict).isAdmitted).toBe(false);
  }
});

it("no more calls of an account wait than there are places in its queue", async () => {
  const queues = new AdmissionQueues(new Places(0));
  const verdicts = Array.from({ length: waitingMax + 10 }, (_, at) =>
    queues.admit(request(`k${at % 7}`)),
  );
  await vi.advanceTimersByTimeAsync(1_000);
  expect(queues.waiting("a")).toBe(waitingMax);
  await vi.advanceTimersByTimeAsync(5_000);
  expect((await Promise.all(verdicts)).filter(({ isAdmitted }) => isAdmitted)).toEqual([]);
  expect(queues.waiting("a")).toBe(0);
});

it("a key whose own limit is reached does not hold up the others", async () => {
  const own = subject("key", { concurrency: 1 });
  const free = new Places(10);
  const queues = new AdmissionQueues({
    admit: (wanted) =>
      "keyId" in wanted && wanted.keyId === "full"
        ? new Places(0, { subject: own }).admit(wanted)
        : free.admit(wanted),
    end: () => free.end(),
  });
  const waiting = queues.admit(request("full"));
  await vi.advanceTimersByTimeAsync(10);
  const other = queues.admit(request("other"));
  await vi.advanceTimersByTimeAsync(1);
  expect((await other).isAdmitted).toBe(true);
  await vi.advanceTimersByTimeAsync(5_000);
  expect((await waiting).isAdmitted).toBe(false);
});

it("a call that fails to be checked fails, and the others go on", async () => {
  const places = new Places(0);
  let isAway = false;
  const queues = new AdmissionQueues({
    admit: (wanted) => (isAway ? Promise.reject(new Error("away")) : places.admit(wanted)),
    end: () => places.end(),
  });
  const verdict = queues.admit(request("k"));
  await vi.advanceTimersByTimeAsync(10);
  isAway = true;
  await Promise.all([expect(verdict).rejects.toThrow("away"), vi.advanceTimersByTimeAsync(200)]);
  expect(queues.waiting("a")).toBe(0);
});

it("keys take turns and their calls keep their order, whatever comes, ends and leaves", async () => {
  const step = fc.record({
    kind: fc.constantFrom("call", "call", "end", "leave", "pass"),
    key: fc.nat(2),
    at: fc.nat(20),
  });
  const property = async (steps: readonly { kind: string; key: number; at: number }[]) => {
    const places = new Places(2);
    const queues = new AdmissionQueues(places);
    const calls: { key: number; signal: CancelSource; verdict?: string; askedMs: number }[] = [];
    const admitted: number[] = [];
    for (const { kind, key, at } of steps) {
      if (kind === "call") {
        const call: (typeof calls)[number] = {
          ...{ key, signal: new CancelSource(), askedMs: performance.now() },
        };
        const index = calls.push(call) - 1;
        void queues
          .admit(request(`k${key}`, { signal: call.signal, waitMs: 2_000 }))
          .then(({ isAdmitted }) => {
            // Answered once, in time, and never admitted after it left.
            expect(call.verdict).toBeUndefined();
            expect(performance.now() - call.askedMs).toBeLessThanOrEqual(2_003);
            call.verdict = isAdmitted ? "admitted" : "refused";
            if (isAdmitted) {
              expect(call.signal.aborted).toBe(false);
              admitted.push(index);
            }
          });
      } else if (kind === "end" && admitted.length > 0 && places.running > 0) {
        places.end();
        queues.onEnd("a");
      } else if (kind === "leave") calls[at]?.signal.cancel();
      await vi.advanceTimersByTimeAsync(kind === "pass" ? 300 : 5);
    }
    await vi.advanceTimersByTimeAsync(5_000);
    expect(places.most).toBeLessThanOrEqual(2);
    expect(queues.waiting("a")).toBe(0);
    expect(calls.every(({ verdict }) => verdict !== undefined)).toBe(true);
    for (const key of [0, 1, 2]) {
      const own = admitted.filter((index) => calls[index]?.key === key);
      expect(own).toEqual(own.toSorted((a, b) => a - b));
    }
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 60 }), property), { numRuns: 60 });
});

it("while several keys wait, none is served twice before the others are served once", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(3), { minLength: 2, maxLength: 40 }), async (keys) => {
      const places = new Places(1);
      const queues = new AdmissionQueues(places);
      await Promise.all([queues.admit(request("first")), vi.advanceTimersByTimeAsync(1)]);
      const left = [0, 0, 0, 0];
      const order: number[] = [];
      for (const key of keys) {
        left[key] = (left[key] ?? 0) + 1;
        void queues
          .admit(request(`k${key}`, { waitMs: 30_000 }))
          .then(({ isAdmitted }) => isAdmitted && order.push(key));
      }
      await vi.advanceTimersByTimeAsync(5);
      while (order.length < keys.length) {
        const before = order.length;
        places.end();
        queues.onEnd("a");
        await vi.advanceTimersByTimeAsync(5);
        expect(order).toHaveLength(before + 1);
      }
      const served = [0, 0, 0, 0];
      for (const key of order) {
        served[key] = (served[key] ?? 0) + 1;
        for (const other of [0, 1, 2, 3]) {
          const isWaiting = (served[other] ?? 0) < (left[other] ?? 0);
          if (isWaiting) expect((served[key] ?? 0) - (served[other] ?? 0)).toBeLessThanOrEqual(1);
        }
      }
    }),
    { numRuns: 60 },
  );
});
