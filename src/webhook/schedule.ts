/**
 * The retry schedule of deliveries, the classification of attempts, and the slots of concurrent
 * deliveries. Pure.
 */
import { AttemptOutcome } from "../../gen/uas/webhook/v1/webhook_pb.ts";

/** The kinds of events, as the database stores them. */
export const EventKind = { PROGRESS: 1, TERMINAL: 2, TEST: 3 } as const;

/** A value of {@link EventKind}. */
export type EventKindValue = (typeof EventKind)[keyof typeof EventKind];

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/**
 * The pause after each failed attempt in milliseconds: 14 attempts in 72 hours. The last attempt
 * has no pause.
 */
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

/**
 * The jitter of a pause, as a share of it: deliveries that failed together do not return together.
 */
const jitter = 0.2;

/** The longest `retry-after` that is honoured. */
const retryAfterMsMax = hour;

/** An attempt that has ended. */
export interface EndedAttempt {
  readonly kind: EventKindValue;
  /** Its position in the schedule, from 1. */
  readonly series: number;
  readonly outcome: AttemptOutcome;
  /** The receiver's `retry-after`; 0 if absent. */
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

/** Reads `retry-after`, in milliseconds; 0 if it is missing or invalid. */
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

/*
 * The slots of concurrent deliveries. A delivery to a receiver that hangs occupies a slot for five
 * seconds, so no receiver and no account gets many. Receivers that failed or are slow share a part
 * of the slots; together with unknown ones they share a larger part; the rest is reserved for
 * receivers that answer. Pure: the caller passes the time.
 *
 * A receiver's share grows like TCP's window: one at first, one more for each answer, half after a
 * failure. With a fixed share of 4 and a hundred slots, sixty receivers that hang would still
 * occupy all of them.
 */

/** Maximum numbers of concurrent deliveries. */
export interface SlotLimits {
  /** In this process. */
  readonly node: number;
  /** Of one account. */
  readonly account: number;
  /** To one receiver. */
  readonly endpoint: number;
  /** The share of `node` for receivers that failed or are slow, 0 to 1. */
  readonly suspectShare: number;
  /** The share for these and for receivers of which nothing is known, 0 to 1. */
  readonly unprovenShare: number;
  /** Duration of a delivery after which its receiver is suspect. */
  readonly slowMs: number;
}

interface Endpoint {
  readonly accountId: string;
  /** Start times of the deliveries in progress, oldest first. */
  readonly startsMs: Set<{ readonly atMs: number }>;
  /** Maximum number of deliveries in progress. */
  window: number;
  /** The outcome class of the last delivery. */
  reputation: Reputation;
}

/** The reputation of a receiver: it answers, it is unknown, or it failed or is slow. */
type Reputation = "proven" | "new" | "suspect";

/** One delivery in progress. */
export interface Slot {
  /** Frees the slot. @param isGood whether the receiver accepted the delivery */
  end(isGood: boolean): void;
}

/** Maximum number of idle receivers whose state is stored. */
const idleMax = 10_000;

/** The slots of one process. */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #busy = new Set<Endpoint>();
  readonly #accounts = new Map<string, number>();
  #used = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /** Number of deliveries in progress. */
  get used(): number {
    return this.#used;
  }

  /**
   * Plans how many deliveries each receiver may begin, in the given order, until no slot is free.
   * Receivers without a slot are omitted. Call {@link begin} before the next plan.
   *
   * @param ready receivers that have something to send, with their accounts
   */
  plan(
    ready: Iterable<readonly [endpointId: string, accountId: string]>,
    nowMs: number,
  ): Map<string, number> {
    const planned = new Map<string, number>();
    const ofAccounts = new Map<string, number>();
    let free = this.#limits.node - this.#used;
    const freeOf = this.#freeOf(nowMs);
    for (const [endpointId, accountId] of ready) {
      if (free <= 0) break;
      const endpoint = this.#endpoints.get(endpointId);
      const ofAccount = ofAccounts.get(accountId) ?? this.#accounts.get(accountId) ?? 0;
      const reputation = endpoint === undefined ? "new" : this.#reputationOf(endpoint, nowMs);
      const slots = Math.min(
        free,
        reputation === "proven" ? free : freeOf[reputation],
        (endpoint?.window ?? 1) - (endpoint?.startsMs.size ?? 0),
        this.#limits.account - ofAccount,
      );
      if (slots <= 0) continue;
      planned.set(endpointId, slots);
      ofAccounts.set(accountId, ofAccount + slots);
      free -= slots;
      if (reputation !== "proven") freeOf.new -= slots;
      // Suspects are among the unproven, so their number never exceeds the rest for these.
      freeOf.suspect = Math.min(
        freeOf.suspect - (reputation === "suspect" ? slots : 0),
        freeOf.new,
      );
    }
    return planned;
  }

  /** Takes a slot for a delivery that begins. */
  begin(endpointId: string, accountId: string, nowMs: number): Slot {
    const endpoint = this.#endpoints.get(endpointId) ?? this.#remember(endpointId, accountId);
    const start = { atMs: nowMs };
    endpoint.startsMs.add(start);
    this.#busy.add(endpoint);
    this.#accounts.set(accountId, (this.#accounts.get(accountId) ?? 0) + 1);
    this.#used++;
    return {
      end: (isGood) => {
        if (!endpoint.startsMs.delete(start)) return;
        if (endpoint.startsMs.size === 0) this.#busy.delete(endpoint);
        endpoint.reputation = isGood ? "proven" : "suspect";
        endpoint.window = isGood
          ? Math.min(endpoint.window + 1, this.#limits.endpoint)
          : Math.max(1, endpoint.window >> 1);
        this.#leave(accountId);
      },
    };
  }

  #leave(accountId: string): void {
    const left = (this.#accounts.get(accountId) ?? 1) - 1;
    if (left === 0) this.#accounts.delete(accountId);
    else this.#accounts.set(accountId, left);
    this.#used--;
  }

  /** Number of further deliveries that may begin to unproven receivers. */
  #freeOf(nowMs: number): Record<"new" | "suspect", number> {
    const used = { proven: 0, new: 0, suspect: 0 };
    for (const endpoint of this.#busy)
      used[this.#reputationOf(endpoint, nowMs)] += endpoint.startsMs.size;
    const { node, suspectShare, unprovenShare } = this.#limits;
    const free = (share: number, taken: number): number =>
      Math.max(1, Math.floor(node * share)) - taken;
    const unproven = free(unprovenShare, used.new + used.suspect);
    return { new: unproven, suspect: Math.min(unproven, free(suspectShare, used.suspect)) };
  }

  #reputationOf({ reputation, startsMs }: Endpoint, nowMs: number): Reputation {
    const [oldest] = startsMs;
    const isSlow = oldest !== undefined && nowMs - oldest.atMs > this.#limits.slowMs;
    return isSlow ? "suspect" : reputation;
  }

  #remember(endpointId: string, accountId: string): Endpoint {
    if (this.#endpoints.size >= idleMax) this.#forgetIdle();
    const endpoint: Endpoint = { accountId, startsMs: new Set(), window: 1, reputation: "new" };
    this.#endpoints.set(endpointId, endpoint);
    return endpoint;
  }

  /** Removes the oldest tenth, except for busy receivers. */
  #forgetIdle(): void {
    let left = idleMax / 10;
    for (const [endpointId, endpoint] of this.#endpoints) {
      if (endpoint.startsMs.size === 0) this.#endpoints.delete(endpointId);
      if (--left <= 0) return;
    }
  }
}
