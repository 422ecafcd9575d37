/**
 * R-MON-5: when a hold grows and when a reply stops, against an account that is played out token by
 * token.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HoldGrowth, type HoldPlan, planHold } from "../../../../src/calls/pipeline/hold-plan.ts";

const plans = fc
  .record({
    maxTokens: fc.integer({ min: 1, max: 4_000 }),
    firstTokens: fc.integer({ min: 1, max: 500 }),
    inputNanos: fc.bigInt({ min: 0n, max: 100_000n }),
    tokenNanos: fc.bigInt({ min: 0n, max: 5_000n }),
  })
  .map(({ inputNanos, tokenNanos, ...tokens }) => {
    const priceOf = (output: number): bigint => inputNanos + BigInt(output) * tokenNanos;
    return {
      priceOf,
      tokenNanos,
      maxTokens: tokens.maxTokens,
      plan: planHold({ ...tokens, inputTokens: 10, priceOf }),
    };
  });

/** The ledger's side: one account, and what one call holds of it. */
class Account {
  held: bigint;
  available: bigint;

  constructor({ firstNanos }: HoldPlan, available: bigint) {
    this.held = firstNanos;
    this.available = available;
  }

  grow(toNanos: bigint): bigint {
    const wanted = toNanos - this.held;
    const granted = wanted < this.available ? wanted : this.available;
    if (granted > 0n) {
      this.held += granted;
      this.available -= granted;
    }
    return this.held;
  }
}

describe("the growth of a hold", () => {
  it("the growth of a hold stops a reply exactly where the hold is used up and the ledger granted no more", () => {
    const speeds = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 60 });
    const delays = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(
        plans,
        speeds,
        delays,
        fc.bigInt({ min: 0n, max: 20_000_000n }),
        fc.boolean(),
        (made, bursts, waits, available, isHonoured) => {
          const { plan, priceOf, maxTokens } = made;
          const limitTokens = isHonoured ? maxTokens : 3 * maxTokens;
          const growth = new HoldGrowth(plan);
          const account = new Account(plan, available);
          let tokens = 0;
          let question: { nanos: bigint; waits: number } | undefined;
          let asked = 0;
          for (const [turn, burst] of bursts.entries()) {
            tokens = Math.min(tokens + burst, limitTokens);
            const cost = priceOf(tokens);
            if (question !== undefined && question.waits-- <= 0) {
              growth.extended(question.nanos, account.grow(question.nanos), cost);
              question = undefined;
            }
            expect(growth.heldNanos).toBe(account.held);
            const step = growth.step(cost);
            if (step === "extend") {
              expect(question).toBeUndefined();
              const nanos = growth.requestExtension(cost);
              expect(nanos).toBeGreaterThan(account.held);
              if (isHonoured) expect(nanos).toBeLessThanOrEqual(plan.maxNanos);
              question = { nanos, waits: waits[turn % waits.length] ?? 0 };
              asked++;
            } else if (step === "stop") {
              expect(question).toBeUndefined();
              expect(account.available).toBe(0n);
              expect(cost).toBeGreaterThanOrEqual(account.held);
              return;
            } else if (question === undefined && growth.canRunOut) {
              // Text delivered without the ledger's answer is covered, except for the slack of an
              // estimate.
              const slack = account.held < plan.maxNanos ? 0n : plan.slackNanos;
              expect(cost).toBeLessThanOrEqual(account.held + slack);
            }
          }
          // Never a round trip for each piece: at most two for each step, and some for the last
          // rest.
          const steps = plan.stepTokens === 0 ? 0 : tokens / plan.stepTokens;
          expect(asked).toBeLessThanOrEqual(2 * steps + 6);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("decides nothing before the announced number of tokens", () => {
    fc.assert(
      fc.property(
        plans,
        fc.nat(3_000),
        fc.bigInt({ min: 0n, max: 1_000_000n }),
        (made, tokens, granted) => {
          const { plan, priceOf, tokenNanos } = made;
          const growth = new HoldGrowth(plan);
          const cost = priceOf(tokens);
          if (growth.step(cost) === "extend") {
            const nanos = growth.requestExtension(cost);
            const ahead = growth.tokensAhead(cost);
            // While an answer is pending, the next thing to happen is that the hold is used up.
            expect(growth.isUsedUp(priceOf(tokens + Math.max(ahead - 1, 0)))).toBe(
              growth.isUsedUp(cost),
            );
            const held = plan.firstNanos + granted;
            growth.extended(nanos, held < nanos ? held : nanos, cost);
          }
          const ahead = growth.tokensAhead(cost);
          if (growth.step(cost) !== "go" || ahead < 1) return;
          const before = ahead === Infinity ? 1_000_000 : ahead - 1;
          if (growth.canRunOut) expect(growth.step(cost + BigInt(before) * tokenNanos)).toBe("go");
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it("the growth of a hold begins with the whole maximum where the first hold covers it, or output costs nothing", () => {
    const priceOf = (output: number): bigint => 7n + BigInt(output) * 3n;
    const short = planHold({ inputTokens: 10, maxTokens: 10, firstTokens: 10, priceOf });
    expect(short.firstNanos).toBe(37n);
    expect([new HoldGrowth(short).step(37n), new HoldGrowth(short).step(38n)]).toEqual([
      "go",
      "extend",
    ]);
    const free = planHold({ inputTokens: 10, maxTokens: 100, firstTokens: 10, priceOf: () => 7n });
    expect(new HoldGrowth(free).canRunOut).toBe(false);
    expect(new HoldGrowth(free).tokensAhead(7n)).toBe(Infinity);
  });

  it("requests more while a part was granted, until hardly anything is left", () => {
    const plan = planHold({ inputTokens: 10, maxTokens: 1_000, firstTokens: 160, priceOf: BigInt });
    const growth = new HoldGrowth(plan);
    expect([growth.step(79n), growth.step(80n)]).toEqual(["go", "extend"]);
    expect(growth.requestExtension(80n)).toBe(320n);
    growth.extended(320n, 200n, 100n);
    expect([growth.step(149n), growth.step(150n)]).toEqual(["go", "extend"]);
    expect(growth.requestExtension(150n)).toBe(360n);
    // Money came free meanwhile.
    growth.extended(360n, 360n, 150n);
    expect([growth.step(279n), growth.step(280n)]).toEqual(["go", "extend"]);
    growth.extended(growth.requestExtension(280n), 360n, 350n);
    expect([growth.step(359n), growth.step(360n)]).toEqual(["go", "stop"]);
  });
});
