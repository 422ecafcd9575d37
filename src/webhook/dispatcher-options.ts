/** What sending needs, and how long it takes. */
import type { Pool } from "pg";
import type { GuardedClient } from "../http/guarded-client.ts";
import type { AttemptResult } from "./attempt.ts";
import type { Verdict } from "./schedule.ts";
import type { Secrets } from "./secrets.ts";
import type { SlotLimits } from "./slots.ts";

/** What a dispatcher needs. */
export interface DispatcherOptions {
  readonly pool: Pool;
  /** The database's address, for a connection of its own. Contains a password. */
  readonly url: string;
  readonly client: GuardedClient;
  readonly secrets: Secrets;
  /** Told of every attempt that has ended, when it is written down. Default: nobody. */
  readonly onAttempt?: (finished: Finished) => void;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Default: those of the limits. */
  readonly slots?: Partial<SlotLimits>;
  /** In milliseconds. Default: those of the limits. */
  readonly timings?: Partial<DispatcherTimings>;
  /** The time of attempts. Default: now. */
  readonly now?: () => Date;
  /** From 0 to below 1; decides jitter. Default: `Math.random`. */
  readonly random?: () => number;
  /** Called at named points, for tests that kill the process there. Default: nothing. */
  readonly at?: (point: DispatchPoint) => void;
}

/** How long things take, in milliseconds. */
export interface DispatcherTimings {
  readonly leaseMs: number;
  readonly scanMs: number;
  readonly answerMs: number;
}

/** Where a process can die. */
export type DispatchPoint =
  | "claim.sent"
  | "claim.answered"
  | "attempt.begun"
  | "attempt.answered"
  | "record.sent"
  | "record.answered"
  | "recover.done";

/** An attempt that has ended and is written down. */
export interface Finished {
  readonly accountId: string;
  readonly origin: string;
  readonly result: AttemptResult;
  readonly verdict: Verdict;
  /** Whether the receiver was given up by this attempt. */
  readonly isDead: boolean;
}
