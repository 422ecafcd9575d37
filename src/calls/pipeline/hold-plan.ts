/**
 * Decides how much a call holds, when its hold grows, and when its reply stops (R-MON-5, R-MON-12).
 * Pure: without ledger and clock. All amounts are nano-USD.
 */
import { estimateTokens } from "../../tokens/estimate.ts";

/** The first hold of a call, and how it grows. */
export interface HoldPlan {
  /** The hold before the first attempt. */
  readonly firstNanos: bigint;
  /** The maximum cost at a vendor that honours the output limit. */
  readonly maxNanos: bigint;
  /** The output token limit of all choices together. */
  readonly maxTokens: number;
  /** The input tokens that are held for. */
  readonly inputTokens: number;
  /** The cost of the input alone. */
  readonly inputNanos: bigint;
  /** The amount of one extension: the cost of `stepTokens` output tokens. */
  readonly stepNanos: bigint;
  readonly stepTokens: number;
  /**
   * Amount by which the estimated cost may exceed a hold of `maxNanos` that cannot grow. The
   * delivered text only estimates the tokens, and a reply within its limit must not be cut because
   * its words are long.
   */
  readonly slackNanos: bigint;
}

/** The inputs of a plan. */
interface HoldLimits {
  /** The output token limit of all choices together. */
  readonly maxTokens: number;
  /** See {@link HoldPlan}. */
  readonly inputTokens: number;
  /** The output tokens that the first hold covers; at most `maxTokens` count. */
  readonly firstTokens: number;
  /** The maximum cost of the call with this many output tokens. */
  readonly priceOf: (outputTokens: number) => bigint;
}

/**
 * The minimum of a step and of the slack, in tokens: smaller steps would send an extend request for
 * each word.
 */
const stepTokensMin = 64;

/** The maximum of a step beyond the output limit, in tokens. */
const overrunStepTokensMax = 2_048;

/** Plans the hold of a call. */
export function planHold({ maxTokens, inputTokens, firstTokens, priceOf }: HoldLimits): HoldPlan {
  const maxNanos = priceOf(maxTokens);
  const inputNanos = priceOf(0);
  const atLeast = Math.max(maxTokens, stepTokensMin);
  const slackNanos = (atLeast === maxTokens ? maxNanos : priceOf(atLeast)) - inputNanos;
  const bounds = { maxNanos, maxTokens, inputTokens, inputNanos, slackNanos };
  if (firstTokens < maxTokens) {
    const firstNanos = priceOf(firstTokens);
    const stepNanos = firstNanos - inputNanos;
    return { ...bounds, firstNanos, stepNanos, stepTokens: firstTokens };
  }
  const stepTokens = Math.min(atLeast, overrunStepTokensMax);
  const stepNanos = stepTokens === atLeast ? slackNanos : priceOf(stepTokens) - inputNanos;
  return { ...bounds, firstNanos: maxNanos, stepNanos, stepTokens };
}

/** The decision for a call: continue, extend the hold, or stop the reply. */
type HoldStep = "go" | "extend" | "stop";

/** A rest below one sixteenth of a step is not worth another extend request. */
const restDivisor = 16n;

/**
 * Decides for one call when its hold grows and when its reply stops.
 *
 * Below `maxNanos` the hold is extended when half a step is left, so that the ledger's answer
 * arrives before the hold is used up. If only a part is granted, it is extended again each time
 * half of the rest is used: other calls may release money meanwhile. The reply stops when the hold
 * is used up and the ledger granted nothing more, but never while an answer is pending.
 *
 * If a reply seems to exceed `maxNanos`, its vendor ignores the limit, or its words are long. The
 * hold then grows with it. If the hold cannot grow, the reply stops once the slack is used up too.
 */
export class HoldGrowth {
  readonly #plan: HoldPlan;
  #heldNanos: bigint;
  /** The rest at which the hold is extended. */
  #lowNanos: bigint;
  #isExtending = false;
  /** The ledger could not grant more. */
  #isExhausted = false;

  constructor(plan: HoldPlan) {
    this.#plan = plan;
    this.#heldNanos = plan.firstNanos;
    this.#lowNanos = this.#isFull ? 0n : plan.stepNanos / 2n;
  }

  /** The current hold. */
  get heldNanos(): bigint {
    return this.#heldNanos;
  }

  /** Whether the hold can be used up; false if output costs nothing. */
  get canRunOut(): boolean {
    return this.#plan.stepNanos > 0n;
  }

  /** Whether a reply of this cost must stop if the hold cannot grow. */
  isUsedUp(costNanos: bigint): boolean {
    if (!this.canRunOut) return false;
    const slackNanos = this.#isFull ? this.#plan.slackNanos : 0n;
    return costNanos >= this.#heldNanos + slackNanos;
  }

  /** The estimated cost of text that has not been read. */
  textNanos(textBytes: number): bigint {
    const { stepNanos, stepTokens } = this.#plan;
    return (BigInt(estimateTokens(textBytes)) * stepNanos) / BigInt(stepTokens);
  }

  /** Decides for the current cost. */
  step(costNanos: bigint): HoldStep {
    if (!this.canRunOut || this.#isExtending) return "go";
    if (this.#isExhausted) return this.isUsedUp(costNanos) ? "stop" : "go";
    const restNanos = this.#heldNanos - costNanos;
    const isLow = this.#isFull ? restNanos < 0n : restNanos <= this.#lowNanos;
    return isLow ? "extend" : "go";
  }

  /** Marks an extend request as pending. @returns the amount to hold in all */
  requestExtension(costNanos: bigint): bigint {
    this.#isExtending = true;
    const { stepNanos, maxNanos } = this.#plan;
    const used = costNanos > this.#heldNanos ? costNanos : this.#heldNanos;
    const requested = used + stepNanos;
    const isWithinLimit = !this.#isFull && costNanos <= maxNanos;
    return isWithinLimit && requested > maxNanos ? maxNanos : requested;
  }

  /**
   * Applies the ledger's answer. @param requestedNanos the amount that {@link requestExtension}
   * returned
   */
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

  /** The number of further output tokens that the hold covers; Infinity if output is free. */
  tokensCovered(costNanos: bigint): number {
    if (!this.canRunOut) return Number.POSITIVE_INFINITY;
    const { slackNanos } = this.#plan;
    return this.#tokensFor(this.#heldNanos - costNanos + (this.#isFull ? slackNanos : 0n));
  }

  /**
   * The number of further output tokens until the next decision. While an answer is pending: until
   * the hold is used up. Infinity means never.
   */
  tokensAhead(costNanos: bigint): number {
    if (!this.canRunOut) return Number.POSITIVE_INFINITY;
    if (this.#isExhausted || this.#isExtending) return this.tokensCovered(costNanos);
    const restNanos = this.#heldNanos - costNanos;
    return this.#tokensFor(this.#isFull ? restNanos + 1n : restNanos - this.#lowNanos);
  }

  /** The output tokens that an amount pays for. */
  #tokensFor(nanos: bigint): number {
    const { stepNanos, stepTokens } = this.#plan;
    return Math.max(Number((nanos * BigInt(stepTokens)) / stepNanos), 0);
  }

  /** Whether the hold covers the maximum cost within the output limit. */
  get #isFull(): boolean {
    return this.#heldNanos >= this.#plan.maxNanos;
  }
}
