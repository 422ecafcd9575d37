/**
 * The attempts of one call, one after another: over the routes of its model, then over those of
 * each fallback model.
 */
import type { RetryConfig } from "../config/config.ts";
import type { GatewayError } from "../core/errors.ts";
import type { FailedAttempt } from "./attempt.ts";
import { AttemptPlan, type Destination, type RequestAmount } from "./attempt-plan.ts";
import type { AttemptFailure } from "./breaker.ts";
import type { PlannedRoute } from "./planned-route.ts";
import type { Targets } from "./targets.ts";
import { paused, unserved, unusableReply } from "./upstream-refusal.ts";

/** The routes of one model, of which the call tries several. */
export interface AttemptStage {
  readonly routes: readonly PlannedRoute[];
  /** Default: see the configuration. */
  readonly retry?: RetryConfig | undefined;
}

/** Options of {@link Attempts}. */
export interface AttemptsOptions {
  /** The model that was requested, then the fallback models. At least one. */
  readonly stages: readonly AttemptStage[];
  /** The tokens of the request with its reply. Default: none. */
  readonly amount?: RequestAmount | undefined;
  /** Whether the same route may be asked again: false if a job may be running. Default true. */
  readonly isRepeatable?: boolean | undefined;
  /**
   * Key of the conversation, which stays with its route and credential. Default: no conversation is
   * recognised.
   */
  readonly conversation?: string | undefined;
}

/**
 * A failed attempt. `failure`: what it means for routing. `error`: absent if the vendor reported it
 * in its answer.
 */
export interface FailedResult extends Pick<FailedAttempt, "isSent" | "retryAfterMs"> {
  readonly failure: AttemptFailure;
  readonly error?: GatewayError | undefined;
}

/**
 * Chooses the destination of each attempt. Call {@link next}, then {@link failed} if the attempt
 * failed, and so on.
 */
export class Attempts {
  readonly #targets: Targets;
  readonly #options: AttemptsOptions;
  #stage = 0;
  #plan: AttemptPlan;
  #last: GatewayError | undefined;

  constructor(targets: Targets, options: AttemptsOptions) {
    this.#targets = targets;
    this.#options = options;
    this.#plan = this.#planOf(options.stages[0]);
  }

  /**
   * Returns the next destination; undefined if there is none, or if the call may not be tried
   * again.
   */
  next(): Destination | undefined {
    return this.#plan.next() ?? this.#nextStage();
  }

  /** Records a failed attempt. */
  failed(destination: Destination, failed: FailedResult): void {
    this.#plan.failed(destination, failed);
    if (failed.failure === "unfit") return;
    this.#last = failed.error ?? unusableReply("an error in the stream before its first content");
  }

  /** The error of the last attempt at a route that can serve the request, or why there was none. */
  get error(): GatewayError {
    if (this.#last !== undefined) return this.#last;
    const { pausedMs } = this.#plan;
    return pausedMs === undefined ? unserved() : paused(pausedMs);
  }

  /** The tokens of the request with its reply. */
  get amount(): RequestAmount {
    return this.#plan.amount;
  }

  /** Whether a route takes longer requests than this one, or another model may. */
  hasLonger(destination: Destination): boolean {
    return this.#plan.hasLonger(destination);
  }

  #nextStage(): Destination | undefined {
    const stage = this.#options.stages[this.#stage + 1];
    if (stage === undefined) return undefined;
    this.#stage++;
    this.#plan = this.#planOf(stage);
    return this.next();
  }

  #planOf(stage: AttemptStage | undefined): AttemptPlan {
    const { stages, amount, isRepeatable, conversation } = this.#options;
    return new AttemptPlan(stage?.routes ?? [], this.#targets, {
      retry: stage?.retry,
      amount,
      isRepeatable,
      conversation,
      hasFallbacks: this.#stage < stages.length - 1,
    });
  }
}
