/**
 * The slots of concurrent deliveries. A delivery to a receiver that hangs takes a slot for five seconds, so no receiver
 * and no account gets many. Receivers that failed or are slow share a part of the slots; together with unknown ones they
 * share a larger part; the rest is reserved for receivers that answer. Pure: the caller passes the time.
 *
 * A receiver's own share grows as TCP's window does: one at first, one more for each answer, half after a
 * failure. With a fixed share of 4 and a hundred slots, sixty receivers that hang would still take them all.
 */

/** How many deliveries may be under way at once. */
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
  /** How long a delivery may be under way before its receiver is suspect, in milliseconds. */
  readonly slowMs: number;
}

interface Endpoint {
  readonly accountId: string;
  /** When each delivery under way began, oldest first. */
  readonly startsMs: Set<{ readonly atMs: number }>;
  /** How many may be under way. */
  window: number;
  /** How the last one ended. */
  reputation: Reputation;
}

/** The reputation of a receiver: it answers, it is unknown, or it failed or is slow. */
type Reputation = "proven" | "new" | "suspect";

/** One delivery under way. */
export interface Slot {
  /** Frees the slot. @param isGood whether the receiver accepted the delivery */
  end(isGood: boolean): void;
}

/** How many receivers are remembered while nothing is under way to them. */
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

  /** How many are under way. */
  get used(): number {
    return this.#used;
  }

  /**
   * Plans how many deliveries each receiver may begin, in the order given, until no slot is free. Receivers without a
   * slot are left out. Call {@link begin} before the next plan.
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
      // Suspects are among the unproven, so they never have more than is left for these.
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

  /** How many may still begin to receivers that are not proven. */
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

  /** The oldest tenth; one that is busy stays. */
  #forgetIdle(): void {
    let left = idleMax / 10;
    for (const [endpointId, endpoint] of this.#endpoints) {
      if (endpoint.startsMs.size === 0) this.#endpoints.delete(endpointId);
      if (--left <= 0) return;
    }
  }
}
