import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Candidate, chooseCandidate, routePriorities } from "../../../src/routing/choice.ts";

const candidate = fc.record({
  priority: fc.integer({ min: 0, max: 3 }),
  weight: fc.integer({ min: 0, max: 5 }),
  inFlight: fc.integer({ min: 0, max: 4 }),
});
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

function counts(candidates: readonly Candidate[], draws: number): number[] {
  const chosen = new Map<Candidate, number>();
  for (let at = 0; at < draws; at++) {
    const found = chooseCandidate(candidates, (at + 0.5) / draws);
    if (found !== undefined) chosen.set(found, (chosen.get(found) ?? 0) + 1);
  }
  return candidates.map((each) => chosen.get(each) ?? 0);
}

describe("the choice among candidates (R-RTE-1)", () => {
  it("takes one of the given candidates, and none only where there is none", () => {
    fc.assert(
      fc.property(fc.array(candidate), random, (candidates, draw) => {
        const chosen = chooseCandidate(candidates, draw);
        if (candidates.length === 0) expect(chosen).toBeUndefined();
        else expect(candidates).toContain(chosen);
      }),
    );
  });

  it("the choice among candidates never takes a candidate while another has a lower priority number", () => {
    fc.assert(
      fc.property(fc.array(candidate, { minLength: 1 }), random, (candidates, draw) => {
        const best = Math.min(...candidates.map(({ priority }) => priority));
        expect(chooseCandidate(candidates, draw)?.priority).toBe(best);
      }),
    );
  });

  it("the choice among candidates never takes weight 0 while another of the same priority has a weight", () => {
    fc.assert(
      fc.property(fc.array(candidate, { minLength: 1 }), random, (candidates, draw) => {
        const chosen = chooseCandidate(candidates, draw);
        const equals = candidates.filter(({ priority }) => priority === chosen?.priority);
        if (equals.some(({ weight }) => weight > 0)) expect(chosen?.weight).toBeGreaterThan(0);
      }),
    );
  });

  it("takes the one with the fewest calls in flight among equal weights", () => {
    fc.assert(
      fc.property(fc.array(candidate, { minLength: 1 }), random, (candidates, draw) => {
        const chosen = chooseCandidate(candidates, draw);
        const equals = candidates.filter(
          ({ priority, weight }) => priority === chosen?.priority && weight === chosen.weight,
        );
        expect(chosen?.inFlight).toBe(Math.min(...equals.map(({ inFlight }) => inFlight)));
      }),
    );
  });

  it("gives different weights their exact shares, whatever is in flight", () => {
    const weights = fc.uniqueArray(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(weights, fc.array(fc.nat(9), { minLength: 5, maxLength: 5 }), (each, running) => {
        const candidates = each.map((weight, index) => ({
          ...{ priority: 0, weight, inFlight: running[index] ?? 0 },
        }));
        const sum = each.reduce((total, weight) => total + weight, 0);
        const found = counts(candidates, sum * 10);
        expect(found).toEqual(each.map((weight) => weight * 10));
      }),
    );
  });

  it("spreads calls over equal and equally busy candidates", () => {
    const same = [0, 1, 2].map(() => ({ priority: 0, weight: 1, inFlight: 0 }));
    for (const count of counts(same, 300)) expect(Math.abs(count - 100)).toBeLessThanOrEqual(2);
  });
});

describe("the priorities of routes", () => {
  it("the priorities of routes are the order of the list where no route has a weight or priority", () => {
    expect(routePriorities([{}, {}, {}])).toEqual([0, 1, 2]);
  });

  it("the priorities of routes are those of the file, 0 by default, where one route has a weight or priority", () => {
    expect(routePriorities([{ weight: 3 }, {}, { priority: 2 }])).toEqual([0, 0, 2]);
  });
});
