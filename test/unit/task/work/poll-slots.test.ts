/** Intervals of polling vendors about tasks. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { PollSlots } from "../../../../src/task/work/poll-slots.ts";

function open(perSecond: number | undefined) {
  const clock = { nowMs: 0 };
  const slots = new PollSlots({ perSecond: () => perSecond, clock: () => clock.nowMs });
  return { clock, slots };
}

test("a vendor without a limit is polled without delay", () => {
  const { slots } = open(undefined);
  expect(Array.from({ length: 1_000 }, () => slots.plan("v", 250))).toEqual(
    Array.from({ length: 1_000 }, () => 250),
  );
  expect(Array.from({ length: 1_000 }, () => slots.ask("v"))).not.toContain(false);
});

test("the polls of one second are spread over it", () => {
  const { slots } = open(5);
  const pauses = Array.from({ length: 9 }, () => slots.plan("v", 0));
  expect(pauses).toEqual([0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750, 2_000]);
});

test("a late plan does not push back an early one", () => {
  const { slots } = open(1);
  expect(slots.plan("v", 15_000)).toBe(15_000);
  expect(slots.plan("v", 0)).toBe(0);
  expect(slots.plan("v", 0)).toBe(1_000);
});

test("the polls of one vendor do not delay those of another", () => {
  const { slots } = open(1);
  expect(slots.plan("v", 0)).toBe(0);
  expect(slots.plan("w", 0)).toBe(0);
  expect([slots.ask("v"), slots.ask("v"), slots.ask("w")]).toEqual([true, false, true]);
});

test("notified tasks can be polled beside the planned ones, and the limit renews each second", () => {
  const { clock, slots } = open(10);
  const planned = Array.from({ length: 20 }, () => slots.plan("v", 0)).filter((ms) => ms < 1_000);
  expect(planned).toHaveLength(8);
  expect(Array.from({ length: 12 }, () => slots.ask("v")).filter(Boolean)).toHaveLength(10);
  clock.nowMs = 1_000;
  expect(slots.ask("v")).toBe(true);
});

test("no second has more planned polls than its share, no poll is early, and no second stays empty", () => {
  const step = fc.record({ afterMs: fc.nat(3_000), pauseMs: fc.nat(20_000) });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 60 }),
      fc.array(step, { maxLength: 300 }),
      (rate, all) => {
        const { clock, slots } = open(rate);
        const bySecond = new Map<number, number>();
        for (const { afterMs, pauseMs } of all) {
          clock.nowMs += afterMs;
          const planned = slots.plan("v", pauseMs);
          expect(planned).toBeGreaterThanOrEqual(pauseMs);
          const first = Math.floor((clock.nowMs + pauseMs) / 1_000);
          const second = Math.floor((clock.nowMs + planned) / 1_000);
          for (let full = first; full < second; full++) {
            expect(bySecond.get(full) ?? 0).toBeGreaterThanOrEqual(
              Math.max(1, Math.floor(rate * 0.8)),
            );
          }
          bySecond.set(second, (bySecond.get(second) ?? 0) + 1);
        }
        for (const count of bySecond.values()) expect(count).toBeLessThanOrEqual(rate);
      },
    ),
  );
});
