import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Slot, type SlotLimits, Slots } from "../../../src/webhook/schedule.ts";

const limits: SlotLimits = {
  node: 100,
  account: 50,
  endpoint: 8,
  suspectShare: 0.5,
  unprovenShare: 0.85,
  slowMs: 1_000,
};

/** Begins everything that is planned for these receivers. */
function begin(slots: Slots, ready: readonly (readonly [string, string])[], nowMs = 0): Slot[] {
  return [...slots.plan(ready, nowMs)].flatMap(([endpointId, count]) => {
    const accountId = ready.find(([id]) => id === endpointId)?.[1] ?? "";
    return Array.from({ length: count }, () => slots.begin(endpointId, accountId, nowMs));
  });
}

const receivers = (count: number, name: string): [string, string][] =>
  Array.from({ length: count }, (_, index) => [`${name}${index}`, `account ${name}${index}`]);

describe("R-HOOK-4: slots", () => {
  it("a receiver gets one at first, one more for each answer up to its cap, half after a failure", () => {
    const slots = new Slots(limits);
    const ready = [["a", "A"]] as const;
    const window = (): number => slots.plan(ready, 0).get("a") ?? 0;
    expect(window()).toBe(1);
    for (let answered = 1; answered < 20; answered++) {
      slots.begin("a", "A", 0).end(true);
      expect(window()).toBe(Math.min(answered + 1, 8));
    }
    slots.begin("a", "A", 0).end(false);
    expect(window()).toBe(4);
    for (let failed = 0; failed < 5; failed++) slots.begin("a", "A", 0).end(false);
    expect(window()).toBe(1);
    expect(slots.used).toBe(0);
  });

  it("an account has its cap over all its receivers", () => {
    const slots = new Slots(limits);
    const ready = receivers(80, "x").map(([id]) => [id, "one account"] as const);
    expect(begin(slots, ready)).toHaveLength(50);
    expect(slots.plan(ready, 0).size).toBe(0);
    expect(slots.plan([["other", "B"]], 0).get("other")).toBe(1);
  });

  it("receivers that hang leave room for new ones, and more for those that answer", () => {
    const slots = new Slots(limits);
    const answering = receivers(10, "good");
    for (const slot of begin(slots, answering)) slot.end(true);
    const hung = receivers(200, "hung");
    expect(begin(slots, hung)).toHaveLength(85);
    // Slow by now: no more of them, and newcomers wait too; those that answer do not.
    expect(slots.plan(hung, 2_000).size).toBe(0);
    expect(slots.plan(receivers(5, "new"), 2_000).size).toBe(0);
    expect([...slots.plan(answering, 2_000).values()].reduce((sum, count) => sum + count)).toBe(15);
  });

  it("receivers that failed share half, so that new ones find room", () => {
    const slots = new Slots(limits);
    const failing = receivers(200, "bad");
    for (let tries = 0; tries < 3; tries++)
      for (const slot of begin(slots, failing)) slot.end(false);
    expect(begin(slots, failing.slice(0, 85))).toHaveLength(50);
    expect(slots.plan(receivers(60, "new"), 0).size).toBe(35);
  });

  it("no limit is ever exceeded, whatever begins and ends", () => {
    const step = fc.record({
      endpoint: fc.integer({ min: 0, max: 30 }),
      end: fc.option(fc.boolean()),
      afterMs: fc.integer({ min: 0, max: 600 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const small = { ...limits, node: 20, account: 9, endpoint: 4 };
        const slots = new Slots(small);
        const open: { endpoint: string; account: string; slot: Slot }[] = [];
        let nowMs = 0;
        for (const { endpoint, end, afterMs } of steps) {
          nowMs += afterMs;
          if (end !== null) open.splice(endpoint % Math.max(1, open.length), 1)[0]?.slot.end(end);
          const ready = [0, 1, 2].map((more) => `e${(endpoint + more) % 31}`);
          const pairs = ready.map((id) => [id, `a${Number(id.slice(1)) % 4}`] as const);
          for (const [id, count] of slots.plan(pairs, nowMs)) {
            const account = `a${Number(id.slice(1)) % 4}`;
            for (let each = 0; each < count; each++) {
              open.push({ endpoint: id, account, slot: slots.begin(id, account, nowMs) });
            }
          }
          const most = (of: "endpoint" | "account"): number =>
            Math.max(
              0,
              ...Object.values(Object.groupBy(open, (each) => each[of])).map(
                (list) => list?.length ?? 0,
              ),
            );
          expect(slots.used).toBe(open.length);
          expect(open.length).toBeLessThanOrEqual(small.node);
          expect(most("endpoint")).toBeLessThanOrEqual(small.endpoint);
          expect(most("account")).toBeLessThanOrEqual(small.account);
        }
      }),
      { numRuns: 100 },
    );
  });
});
