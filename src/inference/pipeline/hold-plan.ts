/**
 * How much a call holds, when its hold must grow, and when its reply must stop (R-MON-5, R-MON-12). Pure: it knows
 * neither the ledger nor a clock. All amounts are nano-USD.
 */

/** What a call holds at first, and how it grows. */
export interface HoldPlan {
  /** Before a vendor is asked. */
  readonly firstNanos: bigint;
  /** The most that the call can cost at a vendor that honours its output limit. */
  readonly maxNanos: bigint;
  /** The most tokens of output that the call can have within its limit, in all its choices. */
  readonly maxTokens: number;
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
  readonly maxTokens: number;
  /** How many of them are held for in advance; more than `maxTokens`: all of them. */
  readonly firstTokens: number;
  /** The most that the call can cost with so many tokens of output. */
  readonly priceOf: (outputTokens: number) => bigint;
}

/** The fewest tokens of a step and of the slack: a step for each of a few tokens would be a question for each word. */
const tokensMin = 64;

/** The most tokens of a step beyond the limit. */
const overrunStepTokensMax = 2_048;

/** Plans a hold. */
export function planHold({ maxTokens, firstTokens, priceOf }: HoldLimits): HoldPlan {
  const maxNanos = priceOf(maxTokens);
  const inputNanos = priceOf(0);
  const slackNanos = priceOf(Math.max(maxTokens, tokensMin)) - inputNanos;
  const bounds = { maxNanos, maxTokens, inputNanos, slackNanos };
  if (firstTokens < maxTokens) {
    const firstNanos = priceOf(firstTokens);
    const stepNanos = firstNanos - inputNanos;
    return { ...bounds, firstNanos, stepNanos, stepTokens: firstTokens };
  }
  const stepTokens = Math.min(Math.max(maxTokens, tokensMin), overrunStepTokensMax);
  const stepNanos = priceOf(stepTokens) - inputNanos;
  return { ...bounds, firstNanos: maxNanos, stepNanos, stepTokens };
}

/** What is to be done with a call: let it go on, ask for more money, or end its reply. */
export type HoldStep = "go" | "extend" | "stop";

/** A rest of less than this part of a step is not worth another question. */
const restDivisor = 16n;

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
  #isExtending = false;
  /** There was no more to be had. */
  #isExhausted = false;

  constructor(plan: HoldPlan) {
    this.#plan = plan;
    this.#heldNanos = plan.firstNanos;
    this.#lowNanos = this.#isFull ? 0n : plan.stepNanos / 2n;
  }

  /** What is held. */
  get heldNanos(): bigint {
    return this.#heldNanos;
  }

  /** Whether what is held may not be enough. Output that costs nothing cannot use it up. */
  get canRunOut(): boolean {
    return this.#plan.stepNanos > 0n;
  }

  /** Whether a reply that would cost so much has to stop where no more money can be had. */
  isUsedUp(costNanos: bigint): boolean {
    if (!this.canRunOut) return false;
    const slackNanos = this.#isFull ? this.#plan.slackNanos : 0n;
    return costNanos >= this.#heldNanos + slackNanos;
  }

  /** What to do now that the call would cost so much. */
  step(costNanos: bigint): HoldStep {
    if (!this.canRunOut || this.#isExtending) return "go";
    if (this.#isExhausted) return this.isUsedUp(costNanos) ? "stop" : "go";
    const restNanos = this.#heldNanos - costNanos;
    const isLow = this.#isFull ? restNanos < 0n : restNanos <= this.#lowNanos;
    return isLow ? "extend" : "go";
  }

  /** The question is asked: how much is to be held in all. */
  requestExtension(costNanos: bigint): bigint {
    this.#isExtending = true;
    const { stepNanos, maxNanos } = this.#plan;
    const used = costNanos > this.#heldNanos ? costNanos : this.#heldNanos;
    const requested = used + stepNanos;
    const isWithinLimit = !this.#isFull && costNanos <= maxNanos;
    return isWithinLimit && requested > maxNanos ? maxNanos : requested;
  }

  /** It is answered: so much is held. @param requestedNanos what was to be held */
  extended(requestedNanos: bigint, heldNanos: bigint, costNanos: bigint): void {
    this.#isExtending = false;
    if (heldNanos > this.#heldNanos) this.#heldNanos = heldNanos;
    const { stepNanos } = this.#plan;
    if (this.#heldNanos >= requestedNanos) {
      this.#lowNanos = stepNanos / 2n;
      return;
    }
    this.#lowNanos = (this.#heldNanos - costNanos) / 2n;
    this.#isExhausted = this.#lowNanos < stepNanos / restDivisor;
  }

  /** After how many more tokens of output there is something to decide; Infinity: not before an answer, or
   * never. */
  tokensAhead(costNanos: bigint): number {
    if (!this.canRunOut || this.#isExtending) return Number.POSITIVE_INFINITY;
    const { stepNanos, stepTokens, slackNanos } = this.#plan;
    let restNanos = this.#heldNanos - costNanos;
    if (this.#isFull) restNanos += this.#isExhausted ? slackNanos : 1n;
    else if (!this.#isExhausted) restNanos -= this.#lowNanos;
    const tokens = Number((restNanos * BigInt(stepTokens)) / stepNanos);
    return Math.max(tokens, 0);
  }

  /** Whether all is held that the call can cost within its limit. */
  get #isFull(): boolean {
    return this.#heldNanos >= this.#plan.maxNanos;
  }
}
