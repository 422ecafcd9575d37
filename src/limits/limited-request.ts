/** A rate-limited request and the limiter's verdict. */
import type { RateLimits } from "../config/config.ts";

/** The key, account or model to which limits apply. */
export interface LimitSubject {
  /**
   * Unique: `k` and a key, `a` and an account, `m` and a model, `c` and a vendor with its
   * credential.
   */
  readonly name: string;
  readonly kind: "key" | "account" | "model" | "credential";
  readonly limits: RateLimits;
}

/** A request for admission. */
export interface LimitedRequest {
  /** At least one, at most three. */
  readonly subjects: readonly LimitSubject[];
  /** The most tokens that it can use. */
  readonly tokens: number;
}

/** An admitted request. Give it back to `Limiter.end`. */
export interface Ticket extends LimitedRequest {
  readonly isAdmitted: true;
  /** The slice of time in which its tokens are reserved. */
  readonly slice: bigint;
  /** Usage of each subject's limits, in the order of the subjects. */
  readonly used: readonly LimitUse[];
}

/** A request that a limit refuses. */
export interface LimitRefusal {
  readonly isAdmitted: false;
  readonly subject: LimitSubject;
  readonly reason: "requests" | "tokens" | "concurrency";
  /** Time after which a retry may be admitted. */
  readonly retryMs: number;
  readonly used: LimitUse;
}

/** Usage of the last minute. */
export interface LimitUse {
  readonly requests: number;
  readonly tokens: number;
}
