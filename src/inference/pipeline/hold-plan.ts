/**
 * How much a call holds, when its hold must grow, and when its reply must stop (R-MON-5, R-MON-12). Pure: it knows
 * neither the ledger nor a clock. All amounts are nano-USD.
 */

/** What a call holds at first, and how it grows. */
export interface HoldPlan {
  /** Before a vendor is asked. */
  readonly firstNanos: bigint;
  /** The most that the call can cost at a vendor that honours its output limit. */
  readonly mostNanos: bigint;
  /** The most tokens of output that the call can have within its limit, in all its choices. */
  readonly mostTokens: number;
  /** The cost of the input alone. */
  readonly inputNanos: bigint;
  /** By how much it grows at a time: what `stepTokens` of output cost. */
  readonly stepNanos: bigint;
  readonly stepTokens: number;
  /** How far the estimated cost may pass a hold of `mostNanos` that cannot grow: the delivered text only estimates the
   * tokens, and a reply that keeps its limit must not be cut because its words are long. */
  readonly slackNanos: bigint;
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

/** The fewest tokens of a step and of the slack: a step for each of a few tokens would be a question for each word. */
const tokensMin = 64;

/** The most tokens of a step beyond the limit. */
const overrunStepTokensMax = 2_048;

/** Plans a hold. */
export function planHold({ mostTokens, aheadTokens, priceOf }: HoldLimits): HoldPlan {
  const mostNanos = priceOf(mostTokens);
  const inputNanos = priceOf(0);
  const slackNanos = priceOf(Math.max(mostTokens, tokensMin)) - inputNanos;
  const bounds = { mostNanos, mostTokens, inputNanos, slackNanos };
  if (aheadTokens < mostTokens) {
    const firstNanos = priceOf(aheadTokens);
    const stepNanos = firstNanos - inputNanos;
    return { ...bounds, firstNanos, stepNanos, stepTokens: aheadTokens };
  }
  const stepTokens = Math.min(Math.max(mostTokens, tokensMin), overrunStepTokensMax);
  const stepNanos = priceOf(stepTokens) - inputNanos;
  return { ...bounds, firstNanos: mostNanos, stepNanos, stepTokens };
}

/** What is to be done with a call: let it go on, ask for more money, or end its reply. */
export type HoldStep = "go" | "ask" | "stop";

/** A rest of less than this part of a step is not worth another question. */
const restPartMin = 16n;

/**
 * Decides for one call.
 *
 * Below `mostNanos` it asks when half a step is left, so that the answer is there before the money is used up. Where only
 * a part is granted it asks again each time half of the rest is used: money of other calls may come free meanwhile. It
 * stops when all is used up and nothing more was to be had; while an answer is awaited, never.
 *
 * A reply that seems to pass `mostNanos` comes from a vendor that ignores the limit, or has long words. The hold then
 * grows with it, and where it cannot, the reply stops once the slack is used up, too.
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
    this.#lowNanos = this.#isWhole ? 0n : plan.stepNanos / 2n;
  }

  /** What is held. */
  get heldNanos(): bigint {
    return this.#heldNanos;
  }

  /** Whether what is held may not be enough. Output that costs nothing cannot use it up. */
  get mayRunOut(): boolean {
    return this.#plan.stepNanos > 0n;
  }

  /** Whether a reply that would cost so much has to stop where no more money can be had. */
  isUsedUp(costNanos: bigint): boolean {
    if (!this.mayRunOut) return false;
    const slackNanos = this.#isWhole ? this.#plan.slackNanos : 0n;
    return costNanos >= this.#heldNanos + slackNanos;
  }

  /** What to do now that the call would cost so much. */
  step(costNanos: bigint): HoldStep {
    if (!this.mayRunOut || this.#isAsking) return "go";
    if (this.#isLast) return this.isUsedUp(costNanos) ? "stop" : "go";
    const restNanos = this.#heldNanos - costNanos;
    const isLow = this.#isWhole ? restNanos < 0n : restNanos <= this.#lowNanos;
    return isLow ? "ask" : "go";
  }

  /** The question is asked: how much is to be held in all. */
  ask(costNanos: bigint): bigint {
    this.#isAsking = true;
    const { stepNanos, mostNanos } = this.#plan;
    const used = costNanos > this.#heldNanos ? costNanos : this.#heldNanos;
    const wanted = used + stepNanos;
    const isWithinLimit = !this.#isWhole && costNanos <= mostNanos;
    return isWithinLimit && wanted > mostNanos ? mostNanos : wanted;
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
    const { stepNanos, stepTokens, slackNanos } = this.#plan;
    let restNanos = this.#heldNanos - costNanos;
    if (this.#isWhole) restNanos += this.#isLast ? slackNanos : 1n;
    else if (!this.#isLast) restNanos -= this.#lowNanos;
    const tokens = Number((restNanos * BigInt(stepTokens)) / stepNanos);
    return Math.max(tokens, 0);
  }

  /** Whether all is held that the call can cost within its limit. */
  get #isWhole(): boolean {
    return this.#heldNanos >= this.#plan.mostNanos;
  }
}
