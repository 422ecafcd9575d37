/** The retry schedule of deliveries, and the classification of attempts. Pure. */
import { AttemptOutcome } from "../../gen/uas/webhook/v1/webhook_pb.ts";

/** The kinds of events, as the database stores them. */
export const EventKind = { PROGRESS: 1, TERMINAL: 2, TEST: 3 } as const;

/** One of {@link EventKind}. */
export type EventKindValue = (typeof EventKind)[keyof typeof EventKind];

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** The pause after each failed attempt, in milliseconds: 14 attempts in 72 hours. The last attempt has no pause. */
export const retryPausesMs: readonly number[] = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  1 * hour,
  2 * hour,
  4 * hour,
  8 * hour,
  12 * hour,
  12 * hour,
  16 * hour,
  16 * hour,
];

/** The jitter of a pause, as a share of it: deliveries that failed together do not return together. */
const jitter = 0.2;

/** The longest `retry-after` that is honoured, in milliseconds. */
const retryAfterMsMax = hour;

/** An attempt that has ended. */
export interface EndedAttempt {
  readonly kind: EventKindValue;
  /** Its position in the schedule, from 1. */
  readonly series: number;
  readonly outcome: AttemptOutcome;
  /** The receiver's `retry-after`, in milliseconds; 0: none. */
  readonly retryAfterMs: number;
}

/** The next state of the delivery: ended, or another attempt after a pause. */
export type Verdict =
  | { readonly state: "delivered" | "failed" }
  | { readonly state: "pending"; readonly pauseMs: number };

/**
 * Classifies an attempt. Only events of a task's end are retried.
 *
 * @param random from 0 to below 1; decides the jitter
 */
export function classifyAttempt(
  { kind, series, outcome, retryAfterMs }: EndedAttempt,
  random: number,
): Verdict {
  if (outcome === AttemptOutcome.DELIVERED) return { state: "delivered" };
  const pauseMs = retryPausesMs[series - 1];
  const isOver = kind !== EventKind.TERMINAL || outcome === AttemptOutcome.GONE;
  if (isOver || pauseMs === undefined) return { state: "failed" };
  const spread = 1 + jitter * (2 * random - 1);
  const asked = Math.min(retryAfterMs, retryAfterMsMax);
  return { state: "pending", pauseMs: Math.round(Math.max(pauseMs * spread, asked)) };
}

/** Reads `retry-after`, in milliseconds; 0 where it is missing or invalid. */
export function readRetryAfter(header: unknown, now: Date): number {
  if (typeof header !== "string") return 0;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * second;
  const at = Date.parse(header);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now.getTime());
}

/** The outcome of an HTTP status. */
export function outcomeOf(status: number): AttemptOutcome {
  if (status >= 200 && status < 300) return AttemptOutcome.DELIVERED;
  if (status >= 300 && status < 400) return AttemptOutcome.REDIRECTED;
  if (status === 410) return AttemptOutcome.GONE;
  return status >= 400 && status < 500 ? AttemptOutcome.REFUSED : AttemptOutcome.SERVER_ERROR;
}
