/** How much a call holds, when its hold must grow, and when its reply must stop (R-MON-5). Pure: knows
 * neither the ledger nor a clock. All amounts are nano-USD. */

/** What a call holds at first, and how it grows. */
export interface HoldPlan {
  /** Before a vendor is asked. */
  readonly firstNanos: bigint;
  /** The most that the call can cost. A hold never grows beyond it. */
  readonly mostNanos: bigint;
  /** By how much it grows at a time: what `stepTokens` of output cost. */
  readonly stepNanos: bigint;
  readonly stepTokens: number;
}

/** What a plan is made from. */
export interface HoldLimits {
  /** The most tokens of output that the call can have, in all its choices. */
  readonly mostTokens: number;
  /** How many of them are held for in advance; more than `mostTokens`: all of them. */
  readonly aheadTokens: number;
  /** The most that the call can cost with so many tokens of output. */
  readonly priceOf: (outputTokens: number) => bigint;
}

/** Plans a hold. */
export function planHold({ mostTokens, aheadTokens, priceOf }: HoldLimits): HoldPlan {
  const mostNanos = priceOf(mostTokens);
  if (aheadTokens >= mostTokens) {
    return { firstNanos: mostNanos, mostNanos, stepNanos: 0n, stepTokens: 0 };
  }
  const firstNanos = priceOf(aheadTokens);
  return { firstNanos, mostNanos, stepNanos: firstNanos - priceOf(0), stepTokens: aheadTokens };
}

/** What is to be done with a call: let it go on, ask for more money, or end its reply. */
export type HoldStep = "go" | "ask" | "stop";

/** A rest of less than this part of a step is not worth another question. */
const restPartMin = 16n;

/**
 * Decides for one call. It asks when half a step is left, so that the answer is there before the money is
 * used up. Where only a part is granted it asks again each time half of the rest is used: money of other
 * calls may come free meanwhile. It stops when all is used up and nothing more was to be had; while an
 * answer is awaited, never.
 */
export class HoldGrowth {
  readonly #plan: HoldPlan;
  #heldNanos: bigint;
  /** It asks when this is left. */
  #lowNanos: bigint;
  #isAsking = false;
  /** There was no more to be had. */
  #isLast = false;

  constructor(plan: HoldPlan) {
    this.#plan = plan;
    this.#heldNanos = plan.firstNanos;
    this.#lowNanos = plan.stepNanos / 2n;
  }

  /** What is held. */
  get heldNanos(): bigint {
    return this.#heldNanos;
  }

  /** Whether what is held may not be enough. Output that costs nothing cannot use it up. */
  get mayRunOut(): boolean {
    return this.#heldNanos < this.#plan.mostNanos && this.#plan.stepNanos > 0n;
  }

  /** What to do now that the call would cost so much. */
  step(costNanos: bigint): HoldStep {
    if (!this.mayRunOut || this.#isAsking) return "go";
    const restNanos = this.#heldNanos - costNanos;
    if (this.#isLast) return restNanos <= 0n ? "stop" : "go";
    return restNanos <= this.#lowNanos ? "ask" : "go";
  }

  /** The question is asked: how much is to be held in all. */
  ask(costNanos: bigint): bigint {
    this.#isAsking = true;
    const { stepNanos, mostNanos } = this.#plan;
    const used = costNanos > this.#heldNanos ? costNanos : this.#heldNanos;
    return used + stepNanos < mostNanos ? used + stepNanos : mostNanos;
  }

  /** It is answered: so much is held. @param askedNanos what was to be held */
  answered(askedNanos: bigint, heldNanos: bigint, costNanos: bigint): void {
    this.#isAsking = false;
    if (heldNanos > this.#heldNanos) this.#heldNanos = heldNanos;
    const { stepNanos } = this.#plan;
    if (this.#heldNanos >= askedNanos) {
      this.#lowNanos = stepNanos / 2n;
      return;
    }
    this.#lowNanos = (this.#heldNanos - costNanos) / 2n;
    this.#isLast = this.#lowNanos < stepNanos / restPartMin;
  }

  /** After how many more tokens of output there is something to decide; Infinity: not before an answer, or
   * never. */
  tokensAhead(costNanos: bigint): number {
    if (!this.mayRunOut || this.#isAsking) return Number.POSITIVE_INFINITY;
    const restNanos = this.#heldNanos - costNanos - (this.#isLast ? 0n : this.#lowNanos);
    const { stepNanos, stepTokens } = this.#plan;
    const tokens = Number((restNanos * BigInt(stepTokens)) / stepNanos);
    return Math.max(tokens, 0);
  }
}
