/**
 * Targets of attempts: routes and credentials, each with its breaker, calls in flight, health and
 * retries.
 */
import type { Logger } from "pino";
import type { RouteConfig, VendorConfig } from "../config/config.ts";
import { breakerDefault } from "../config/routing.ts";
import { refill } from "../core/derived.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Vendor } from "../provider/vendor.ts";
import { type AttemptFailure, Breaker, type BreakerState } from "./breaker.ts";
import { LastOutcomes } from "./last-outcomes.ts";
import type { LimitSubject } from "../limits/limiter.ts";
import type { VendorQuota } from "./vendor-quota.ts";

/** Retries for each call: a fifth. */
const share = 0.2;

/**
 * Retries that a vendor with few calls always has. A quiet time saves up at most the same number in
 * addition.
 */
const reserve = 10;
const savedMax = 100;

/**
 * The retries that a vendor may get, so that they cannot multiply the load on one that is failing:
 * 20 % of its calls, and {@link reserve}.
 */
export class RetryBudget {
  #left = reserve;

  /** Counts a call that this vendor gets for the first time. */
  onCall(): void {
    if (this.#left < savedMax) this.#left += share;
  }

  /** Takes one retry. Returns whether there was one. */
  take(): boolean {
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}

/** A vendor, opened once for each of its credentials. */
export interface OpenVendor {
  readonly config: VendorConfig;
  /** One client per configured credential; a single one if there are no credentials. */
  readonly clients: readonly [Vendor, ...Vendor[]];
}

/** A route or a credential. */
export abstract class Target {
  abstract readonly vendor: string;
  /** The vendor's name of the model; empty for a credential. */
  abstract readonly model: string;
  /** The name of the credential; empty for a route. */
  abstract readonly credential: string;
  readonly breaker: Breaker;
  readonly last = new LastOutcomes();
  inFlight = 0;

  constructor(breaker: Breaker) {
    this.breaker = breaker;
  }
}

/** A vendor's credential, shared by all its routes. */
export class CredentialTarget extends Target {
  readonly vendor: string;
  readonly model = "";
  readonly credential: string;
  /** Sends requests with this credential. */
  readonly client: Vendor;
  readonly priority: number;
  readonly weight: number;
  /** The operator's limits of it; undefined if there is none. */
  readonly limits: LimitSubject | undefined;

  constructor(client: Vendor, { name, breaker, credentials = [] }: VendorConfig, index: number) {
    super(new Breaker(breaker ?? breakerDefault));
    const {
      name: credential = "none",
      priority = 0,
      weight = 1,
      limits,
    } = credentials[index] ?? {};
    this.client = client;
    this.vendor = name;
    this.credential = credential;
    this.priority = priority;
    this.weight = weight;
    this.limits = limits && { name: `c${name} ${credential}`, kind: "credential", limits };
  }
}

/** Moving averages of a route: recent calls count most. */
export interface Pace {
  /** The time to the first content. */
  firstContentMs: number | undefined;
  /** Bytes of text per second after the first content. */
  bytesPerSecond: number | undefined;
}

/** The share of a new figure in a moving average. */
const newestShare = 0.2;

/** A moving average with a new figure. */
export function average(before: number | undefined, figure: number): number {
  return before === undefined ? figure : before + newestShare * (figure - before);
}

/** A vendor's limits and credentials, shared by all its routes. */
export interface VendorTarget {
  readonly config: VendorConfig;
  readonly credentials: readonly [CredentialTarget, ...CredentialTarget[]];
  readonly retries: RetryBudget;
  inFlight: number;
}

/** The pause of a route and credential after a 429 that names none. */
const rateLimitPauseMs = 1_000;

/** The longest pause after a 429: a vendor's figure may be about one large request only. */
const rateLimitPauseMsMax = 60_000;

/** A vendor and its name of a model, shared by all models that have this route. */
export class RouteTarget extends Target {
  /** Recent speed in this process. Undefined if unknown. */
  readonly pace: Pace = { firstContentMs: undefined, bytesPerSecond: undefined };
  readonly vendor: string;
  readonly model: string;
  readonly credential = "";
  readonly owner: VendorTarget;
  /** End of the pause that the vendor requested by 429, for each credential on this route. */
  readonly pausedUntilMs = new Map<CredentialTarget, number>();
  /** Remaining quota of each credential, if the vendor's replies state it. */
  readonly quotas = new Map<CredentialTarget, VendorQuota>();

  constructor(owner: VendorTarget, { vendor, model }: Pick<RouteConfig, "vendor" | "model">) {
    super(new Breaker(owner.config.breaker ?? breakerDefault));
    this.owner = owner;
    this.vendor = vendor;
    this.model = model;
  }

  /**
   * Pauses a credential for this route after a 429. @param at `retryAfterMs`: the vendor's figure,
   * if it sent one
   */
  pause(
    credential: CredentialTarget,
    { nowMs, retryAfterMs }: { readonly nowMs: number; readonly retryAfterMs: number | undefined },
  ): void {
    const pauseMs = Math.min(retryAfterMs ?? rateLimitPauseMs, rateLimitPauseMsMax);
    this.pausedUntilMs.set(credential, nowMs + pauseMs);
  }
}

/** Options of {@link Targets}. */
export interface TargetsOptions {
  readonly vendors: ReadonlyMap<string, OpenVendor>;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** A monotonic clock in milliseconds. Default `performance.now`. */
  readonly clock?: (() => number) | undefined;
}

/** Interval between updates of the metric of open breakers. */
const showMs = 1_000;

const stateValues: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 };

/** All routes and credentials of a process. */
export class Targets {
  readonly clock: () => number;
  readonly #options: TargetsOptions;
  readonly #vendors = new Map<string, VendorTarget>();
  #byConfig = new WeakMap<RouteConfig, RouteTarget>();
  readonly #routes = new Map<string, RouteTarget>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TargetsOptions) {
    const { vendors } = options;
    this.#options = options;
    this.clock = options.clock ?? (() => performance.now());
    for (const [name, open] of vendors) this.#vendors.set(name, this.#vendorTarget(open));
  }

  /**
   * Exchanges the vendors. A vendor that is the same object as before keeps its breakers, averages
   * and pauses. Attempts of running calls keep the target that they have taken.
   */
  exchange(vendors: ReadonlyMap<string, OpenVendor>): void {
    const before = new Map(this.#vendors);
    refill(
      this.#vendors,
      [...vendors].map(([name, open]) => [name, this.#kept(before.get(name), open)]),
    );
    for (const [key, route] of this.#routes) {
      if (this.#vendors.get(route.vendor) === route.owner) continue;
      this.#routes.delete(key);
      this.#hide(route);
    }
    for (const [name, { credentials }] of before) {
      if (this.#vendors.get(name)?.credentials === credentials) continue;
      for (const credential of credentials) this.#hide(credential);
    }
    // After the old ones are hidden: a new credential may have the name of an old one.
    for (const target of this.all()) this.#show(target);
    this.#byConfig = new WeakMap();
  }

  start(): Promise<void> {
    this.#timer = setInterval(() => this.showPauses(), showMs).unref();
    return Promise.resolve();
  }

  stop(): Promise<void> {
    clearInterval(this.#timer);
    return Promise.resolve();
  }

  /** The target of a route; undefined if its vendor is not open. */
  of(route: RouteConfig): RouteTarget | undefined {
    const known = this.#byConfig.get(route);
    if (known !== undefined) return known;
    const target = this.named(route);
    if (target !== undefined) this.#byConfig.set(route, target);
    return target;
  }

  /** A vendor; undefined if it is not open. */
  vendor(name: string): VendorTarget | undefined {
    return this.#vendors.get(name);
  }

  /** All routes that were used, and all credentials. */
  *all(): Iterable<Target> {
    for (const { credentials } of this.#vendors.values()) yield* credentials;
    yield* this.#routes.values();
  }

  /** Brings the metric of open breakers up to date: the end of a pause is no event. */
  showPauses(): void {
    for (const target of this.all()) if (target.breaker.open !== undefined) this.#show(target);
  }

  /** Records the failure of an attempt at a target; its breaker may open. */
  failed(target: Target, failure: AttemptFailure): void {
    if (!target.breaker.failed(failure, this.clock())) return;
    this.#report(target);
  }

  /** Records the success of an attempt that began at `startMs`; the breaker may close. */
  succeeded(target: Target, startMs: number): void {
    const openedAtMs = target.breaker.open?.openedAtMs;
    if (!target.breaker.succeeded(startMs)) return;
    this.#report(target, openedAtMs);
  }

  #kept(before: VendorTarget | undefined, open: OpenVendor): VendorTarget {
    return before?.config === open.config ? before : this.#vendorTarget(open);
  }

  #vendorTarget({ config, clients }: OpenVendor): VendorTarget {
    const [first, ...others] = clients;
    const credentials = [
      new CredentialTarget(first, config, 0),
      ...others.map((client, index) => new CredentialTarget(client, config, index + 1)),
    ] as const;
    for (const credential of credentials) this.#show(credential);
    return { config, credentials, retries: new RetryBudget(), inFlight: 0 };
  }

  /** The target of a vendor's model; undefined if its vendor is not open. */
  named({ vendor, model }: Pick<RouteConfig, "vendor" | "model">): RouteTarget | undefined {
    const owner = this.#vendors.get(vendor);
    if (owner === undefined) return undefined;
    const key = `${vendor} ${model}`;
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    const target = new RouteTarget(owner, { vendor, model });
    this.#routes.set(key, target);
    this.#show(target);
    return target;
  }

  /** @param openedAtMs when the breaker opened that has closed */
  #report(target: Target, openedAtMs = 0): void {
    const { vendor, model, credential, breaker } = target;
    this.#show(target);
    const { log } = this.#options;
    const fields = {
      vendor,
      ...(model !== "" && { vendorModel: model }),
      ...(credential !== "" && { credential }),
    };
    if (breaker.open === undefined) {
      const openMs = Math.round(this.clock() - openedAtMs);
      log.info({ ...fields, openMs }, "a circuit breaker closed: calls go there again");
      return;
    }
    const { failure } = breaker.open;
    log.warn({ ...fields, failure }, "a circuit breaker opened: calls go elsewhere if they can");
  }

  #hide({ vendor, model, credential }: Target): void {
    this.#options.metrics.breakerState.remove({ vendor, model, credential });
  }

  #show({ vendor, model, credential, breaker }: Target): void {
    const value = stateValues[breaker.state(this.clock())];
    this.#options.metrics.breakerState.set({ vendor, model, credential }, value);
  }
}
