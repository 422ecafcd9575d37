import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AttemptFailure, Breaker } from "../../../src/routing/breaker.ts";
import { breakerDefault } from "../../../src/config/routing.ts";

const second = 1_000;

/** A breaker after these failures, one each second from second 1 on. */
function after(...failures: readonly AttemptFailure[]): Breaker {
  const breaker = new Breaker(breakerDefault, () => 0.5);
  for (const [index, failure] of failures.entries()) breaker.failed(failure, (index + 1) * second);
  return breaker;
}

describe("a circuit breaker (R-RTE-1)", () => {
  it.each([
    ["one refused credential", ["credential"]],
    ["one missing model", ["model"]],
    ["three silences", ["silence", "silence", "silence"]],
    ["five server errors", ["server", "server", "server", "server", "server"]],
    ["five connection errors", ["connect", "connect", "connect", "connect", "connect"]],
    ["two silences and two server errors", ["silence", "silence", "server", "server"]],
  ] as const)("opens after %s, and not before", (_name, failures) => {
    expect(after(...failures.slice(0, -1)).open).toBeUndefined();
    expect(after(...failures).open).toBeDefined();
  });

  it("forgets failures after the window, and with each success", () => {
    const breaker = after("server", "server", "server", "server");
    breaker.failed("server", 31.5 * second);
    expect(breaker.open).toBeUndefined();
    breaker.succeeded(32 * second);
    for (let at = 33; at < 37; at++) breaker.failed("server", at * second);
    expect(breaker.open).toBeUndefined();
    breaker.failed("server", 37 * second);
    expect(breaker.open).toBeDefined();
  });

  it("a circuit breaker is half-open after its cooldown, and closes with the success of a later attempt only", () => {
    const breaker = after("credential");
    expect(breaker.state(10.9 * second)).toBe("open");
    expect(breaker.state(11 * second)).toBe("half_open");
    expect(breaker.succeeded(0.5 * second)).toBe(false);
    expect(breaker.succeeded(11 * second)).toBe(true);
    expect(breaker.state(11 * second)).toBe("closed");
  });

  it("gives one probe for each pause, whose time doubles once (R-RTE-1)", () => {
    const breaker = after("credential");
    expect(breaker.takeProbe(10.9 * second)).toBe(false);
    expect([breaker.takeProbe(11 * second), breaker.takeProbe(11 * second)]).toEqual([true, false]);
    expect(breaker.takeProbe(30.9 * second)).toBe(false);
    expect([breaker.takeProbe(31 * second), breaker.takeProbe(50.9 * second)]).toEqual([
      true,
      false,
    ]);
    expect(breaker.takeProbe(51 * second)).toBe(true);
    expect(breaker.succeeded(52 * second)).toBe(true);
    expect([breaker.takeProbe(53 * second), breaker.takeProbe(53 * second)]).toEqual([true, true]);
  });

  it("varies each pause at random by up to a fifth", () => {
    const pauses = [0, 0.999].map((random) => {
      const breaker = new Breaker(breakerDefault, () => random);
      breaker.failed("credential", 0);
      return breaker.open?.probeAtMs;
    });
    expect(pauses).toEqual([8 * second, expect.closeTo(12 * second, -2)]);
  });

  it("a circuit breaker is open exactly while a model of it is open, for any sequence of outcomes", () => {
    const step = fc.record({
      what: fc.constantFrom("success", "server", "silence", "credential" as const),
      afterMs: fc.integer({ min: 0, max: 20 * second }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const breaker = new Breaker(breakerDefault, () => 0.5);
        let nowMs = 0;
        let row: { readonly atMs: number; readonly what: string }[] = [];
        let isOpen = false;
        for (const { what, afterMs } of steps) {
          nowMs += afterMs;
          if (what === "success") {
            breaker.succeeded(nowMs);
            row = [];
            isOpen = false;
          } else if (!isOpen) {
            breaker.failed(what, nowMs);
            row = [...row.filter(({ atMs }) => atMs > nowMs - 30 * second), { atMs: nowMs, what }];
            const points = { server: 3, silence: 5, credential: 15 };
            isOpen = row.reduce((sum, each) => sum + points[each.what as "server"], 0) >= 15;
            if (isOpen) row = [];
          }
          expect(breaker.open !== undefined).toBe(isOpen);
        }
      }),
    );
  });
});
