/**
 * Permits that a process leases for further requests of subjects that call often: they admit without the database. They
 * are counted before they are used, and leased only while half of each limit is free, so no limit is ever exceeded.
 * Whoever is refused while others have unused ones asks again once those are given back (see limit_admit), so no limit
 * is left unused either.
 */
import type { LimitedRequest, LimitSubject, LimitUse, Ticket } from "./limited-request.ts";

/** How far back calls are counted to tell how many permits will be used, in milliseconds: as long as a lease. */
const paceMs = 100;

/** A lease for fewer costs more than it saves. */
const permitsMin = 2;

/** The most permits of one lease: so many are lost for a minute where a process dies. */
const permitsMax = 32;

/** Subjects whose pace is remembered. */
const pacesMax = 10_000;

/** What the database has granted beside a request. */
export interface Grant {
  readonly permits: number;
  /** By this process's clock, from before the database was asked. */
  readonly untilMs: number;
  readonly slice: bigint;
  /** What is used of each subject's limits, without the permits. */
  readonly used: readonly LimitUse[];
}

/** What is given back: counted, and not used. */
export interface UnusedPermits {
  readonly subjects: readonly LimitSubject[];
  readonly slice: bigint;
  readonly requests: number;
  readonly tokens: number;
}

interface Lease {
  readonly subjects: readonly LimitSubject[];
  readonly slice: bigint;
  readonly untilMs: number;
  requests: number;
  tokens: number;
  used: readonly LimitUse[];
}

interface Pace {
  fromMs: number;
  count: number;
  previous: number;
}

/** The leases of a process, one for each set of subjects that its requests have. */
export class PermitLeases {
  readonly #leases = new Map<string, Lease>();
  readonly #paces = new Map<string, Pace>();
  #untilMs = 0;
  /** Unused permits by subject. */
  readonly #unused = new Map<string, number>();

  /** Admits a request by a permit; `undefined`: there is none for it. */
  take({ subjects, tokens }: LimitedRequest): Ticket | undefined {
    if (this.#leases.size === 0) return undefined;
    const key = keyOf(subjects);
    const lease = this.#leases.get(key);
    if (lease === undefined || lease.requests === 0 || lease.tokens < tokens) return undefined;
    if (lease.untilMs <= performance.now() || !haveSameLimits(subjects, lease.subjects)) {
      return undefined;
    }
    this.#count(key);
    lease.requests--;
    lease.tokens -= tokens;
    this.#add(subjects, -1);
    lease.used = lease.used.map((used) => ({
      requests: used.requests + 1,
      tokens: used.tokens + tokens,
    }));
    return { isAdmitted: true, subjects, tokens, slice: lease.slice, used: lease.used };
  }

  /** How many permits a request that goes to the database should lease: as many as calls came lately. */
  wanted({ subjects }: LimitedRequest): number {
    const key = keyOf(subjects);
    const { count, previous } = this.#count(key);
    const calls = Math.max(count, previous);
    return this.#leases.has(key) || calls < permitsMin ? 0 : Math.min(calls, permitsMax);
  }

  /** Keeps what was granted. */
  grant({ subjects, tokens }: LimitedRequest, { permits, untilMs, slice, used }: Grant): void {
    const lease = { subjects, slice, untilMs, requests: permits, tokens: permits * tokens, used };
    this.#leases.set(keyOf(subjects), lease);
    this.#untilMs = Math.max(this.#untilMs, untilMs);
    this.#add(subjects, permits);
  }

  /** The unused permits of a subject, which count as its running calls. */
  unused(name: string): number {
    return this.#unused.get(name) ?? 0;
  }

  /** The last time until which a permit may be used; `undefined`: there is no lease. */
  get untilMs(): number | undefined {
    return this.#leases.size === 0 ? undefined : this.#untilMs;
  }

  /** Ends the leases whose time is over, or that have no permit left. @param nowMs Infinity: all */
  end(nowMs = performance.now()): readonly UnusedPermits[] {
    const ended: UnusedPermits[] = [];
    for (const [key, lease] of this.#leases) {
      if (lease.untilMs > nowMs && lease.requests > 0) continue;
      this.#leases.delete(key);
      this.#add(lease.subjects, -lease.requests);
      ended.push(lease);
    }
    return ended;
  }

  #add(subjects: readonly LimitSubject[], change: number): void {
    for (const { name } of subjects) {
      const unused = this.unused(name) + change;
      if (unused > 0) this.#unused.set(name, unused);
      else this.#unused.delete(name);
    }
  }

  #count(key: string): Pace {
    const nowMs = performance.now();
    let pace = this.#paces.get(key);
    if (pace === undefined) {
      if (this.#paces.size >= pacesMax) this.#paces.clear();
      this.#paces.set(key, (pace = { fromMs: nowMs, count: 0, previous: 0 }));
    }
    const passedMs = nowMs - pace.fromMs;
    if (passedMs > paceMs) {
      pace.previous = passedMs > 2 * paceMs ? 0 : pace.count;
      pace.count = 0;
      pace.fromMs = nowMs;
    }
    pace.count++;
    return pace;
  }
}

/** The key of a set of subjects: requests with the same one share a lease. */
export function keyOf(subjects: readonly LimitSubject[]): string {
  return subjects.map(({ name }) => name).join(" ");
}

/** A lease ends where a limit was changed. */
function haveSameLimits(some: readonly LimitSubject[], others: readonly LimitSubject[]): boolean {
  return some.every(({ limits }, index) => {
    const other = others[index]?.limits;
    return (
      limits.rpm === other?.rpm &&
      limits.tpm === other?.tpm &&
      limits.concurrency === other?.concurrency
    );
  });
}
