/** A request that limits decide about, and their verdicts: what whoever asks and whoever decides speak of. */
import type { RateLimits } from "../config/config.ts";

/** Who a limit is for. */
export interface LimitSubject {
  /** Unique: `k` and a key, `a` and an account, `m` and a model, `c` and a vendor with its credential. */
  readonly name: string;
  readonly kind: "key" | "account" | "model" | "credential";
  readonly limits: RateLimits;
}

/** A request that wants to be admitted. */
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
  /** What is used of each subject's limits, in their order. */
  readonly used: readonly LimitUse[];
}

/** A request that a limit refuses. */
export interface LimitRefusal {
  readonly isAdmitted: false;
  readonly subject: LimitSubject;
  readonly reason: "requests" | "tokens" | "concurrency";
  /** When its turn may come. */
  readonly retryMs: number;
  readonly used: LimitUse;
}

/** What the last minute has used. */
export interface LimitUse {
  readonly requests: number;
  readonly tokens: number;
}
