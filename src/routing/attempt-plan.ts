/**
 * Chooses the route and credential of each attempt of a call, and ends the attempts (R-RTE-1,
 * R-RTE-2).
 */
import type { RetryConfig } from "../config/config.ts";
import { retryDefault } from "../config/routing.ts";
import type { PlannedRoute } from "./planned-route.ts";
import type { AttemptFailure } from "./breaker.ts";
import { type Candidate, chooseByConversation, chooseCandidate } from "./choice.ts";
import type { CredentialTarget, RouteTarget, Target, Targets } from "./targets.ts";

/** The destination of one attempt. */
export interface Destination {
  readonly planned: PlannedRoute;
  readonly route: RouteTarget;
  readonly credential: CredentialTarget;
  /** Time to wait before the attempt. */
  readonly delayMs: number;
  /** Whether the route's last attempt had failed when this one was chosen. */
  readonly wasFailing: boolean;
  /** Whether its breaker is open, and it is tried all the same. Default false. */
  readonly isForced?: boolean;
  /** Whether the model has no other route or credential. Default false. */
  readonly isOnly?: boolean;
}

/** A failed attempt, as it matters for the next one. */
export interface FailedDestination {
  readonly failure: AttemptFailure;
  /** The pause that the vendor requested; undefined if there is none. */
  readonly retryAfterMs?: number | undefined;
}

type Failed = Destination & FailedDestination;

/** Options of {@link AttemptPlan}. */
export interface AttemptPlanOptions {
  /** Default: {@link retryDefault}. */
  readonly retry?: RetryConfig | undefined;
  /** The tokens of the request with its reply. Default: none. */
  readonly amount?: RequestAmount | undefined;
  /** Whether the same route may be asked again: false if a job may be running. Default true. */
  readonly isRepeatable?: boolean | undefined;
  /** Whether another model takes the call if no attempt of this plan succeeds. Default false. */
  readonly hasFallbacks?: boolean | undefined;
  /**
   * Key of the conversation, which stays with its route and credential. Default: no conversation is
   * recognised.
   */
  readonly conversation?: string | undefined;
}

/**
 * Number of tokens of a request with its reply. Read only if a limit needs them, so that a reader
 * may compute them lazily.
 */
export interface RequestAmount {
  /**
   * As vendors count it before they answer: the request's tokens, and the output that it allows.
   */
  readonly typical: number;
  /** At most. */
  readonly most: number;
}

const noAmount: RequestAmount = { typical: 0, most: 0 };

/** The longest `Retry-After` that is waited for. */
const retryAfterMsMax = 2_000;

/**
 * Maximum random pause before the same route is tried again, because most failures of vendors are
 * short.
 */
const repeatJitterMs = 100;

/**
 * The attempts of one call. Call {@link next}, then {@link failed} if the attempt failed, and so
 * on.
 */
export class AttemptPlan {
  readonly #routes: readonly PlannedRoute[];
  readonly #targets: Targets;
  readonly #options: AttemptPlanOptions;
  readonly #retry: RetryConfig;
  #asked = 0;
  #firstFailureMs: number | undefined;
  #last: Failed | undefined;
  #hasRepeated = false;
  /** Set with the first failure, like all fields below: nearly all calls have none. */
  #failedRoutes: Set<RouteTarget> | undefined;
  #failedPairs:
    | { readonly route: RouteTarget; readonly credential: CredentialTarget }[]
    | undefined;
  #askedVendors: Set<string> | undefined;
  #skipped: Set<Target> | undefined;

  constructor(routes: readonly PlannedRoute[], targets: Targets, options: AttemptPlanOptions) {
    this.#routes = routes;
    this.#targets = targets;
    this.#options = options;
    this.#retry = options.retry ?? retryDefault;
  }

  /**
   * Returns the next destination; undefined if there is none, or if the call may not be tried
   * again.
   */
  next(): Destination | undefined {
    return this.#onlyOne() ?? this.#choose();
  }

  /** Records a failed attempt. */
  failed(failed: Destination, { failure, retryAfterMs }: FailedDestination): void {
    const { route, credential } = failed;
    const nowMs = this.#targets.clock();
    this.#last = { ...failed, failure, retryAfterMs };
    this.#failedRoutes ??= new Set();
    if (failure === "credential" || failure === "rate_limit" || failure === "limited") {
      this.#failedPairs ??= [];
      this.#failedPairs.push({ route, credential });
    } else this.#failedRoutes.add(route);
    if (failure === "rate_limit") route.pause(credential, { nowMs, retryAfterMs });
    if (failure === "overloaded" || failure === "limited" || failure === "unfit") return;
    this.#asked++;
    this.#firstFailureMs ??= nowMs;
    this.#askedVendors ??= new Set();
    this.#askedVendors.add(route.vendor);
  }

  /** The tokens of the request with its reply. */
  get amount(): RequestAmount {
    return this.#options.amount ?? noAmount;
  }

  /** Whether a route takes longer requests than this one, or another model may. */
  hasLonger({ planned }: Destination): boolean {
    if (this.#options.hasFallbacks === true) return true;
    const { maxContext } = planned.route;
    if (maxContext === undefined) return false;
    return this.#routes.some(({ route }) => (route.maxContext ?? Infinity) > maxContext);
  }

  /**
   * When a route that is paused now may be probed, in milliseconds from now; undefined if none is
   * paused.
   */
  get pausedMs(): number | undefined {
    const targets = this.#targets;
    const nowMs = targets.clock();
    const waits = this.#routes.flatMap(({ route }) => {
      const target = targets.of(route);
      const all = target === undefined ? [] : [target, ...target.owner.credentials];
      return all.flatMap(({ breaker }) => breaker.open?.probeAtMs ?? []);
    });
    return waits.length === 0 ? undefined : Math.max(0, Math.min(...waits) - nowMs);
  }

  /** The only candidate of most models, if nothing has failed. */
  #onlyOne(): Destination | undefined {
    const [planned] = this.#routes;
    if (planned === undefined || this.#routes.length > 1 || this.#last !== undefined) {
      return undefined;
    }
    if (planned.dialect === undefined) return undefined;
    const route = this.#targets.of(planned.route);
    if (route === undefined || route.owner.credentials.length > 1) return undefined;
    const [credential] = route.owner.credentials;
    if (route.breaker.open !== undefined || credential.breaker.open !== undefined) return undefined;
    route.owner.retries.onCall();
    return destination(planned, route, credential, this.#options.hasFallbacks !== true);
  }

  #choose(): Destination | undefined {
    const last = this.#last;
    const targets = this.#targets;
    if (this.#asked >= this.#retry.attempts) return undefined;
    const untilMs = (this.#firstFailureMs ?? Infinity) + this.#retry.withinMs;
    if (targets.clock() > untilMs) return undefined;
    if (last !== undefined && this.#mayRepeat(last)) {
      const other = this.#pick();
      // A repetition must not take the attempt that a backup needs.
      const isPreferred =
        other === undefined ||
        (priorityOf(other) > priorityOf(last) && this.#asked + 1 < this.#retry.attempts);
      const delayMs = last.retryAfterMs ?? Math.random() * repeatJitterMs;
      const isInTime = targets.clock() + delayMs <= untilMs;
      if (isPreferred && isInTime && last.route.owner.retries.take()) {
        this.#hasRepeated = true;
        return { ...last, delayMs };
      }
    }
    for (;;) {
      const picked = this.#pick() ?? this.#lastResort();
      if (picked === undefined) return undefined;
      const { route, credential, isForced = false } = picked;
      if (!isForced && !this.#takeProbes(route, credential)) continue;
      if (this.#takeRetry(picked)) return picked;
    }
  }

  #mayRepeat({ failure, retryAfterMs, wasFailing }: Failed): boolean {
    if (this.#hasRepeated || this.#options.isRepeatable === false) return false;
    if (retryAfterMs !== undefined) {
      return retryAfterMs <= retryAfterMsMax && (failure === "server" || failure === "rate_limit");
    }
    return failure === "server" && !wasFailing;
  }

  /**
   * Before the first attempt, if no other model takes the call: one that is paused after a 429; for
   * a model with one route, which has nothing to lose, also one whose breaker is open.
   */
  #lastResort(): Destination | undefined {
    if (this.#options.hasFallbacks === true) return undefined;
    const [planned] = this.#routes;
    if (planned === undefined || this.#last !== undefined) return undefined;
    const paused = this.#pick({ withPaused: true });
    if (paused !== undefined || this.#routes.length > 1) return paused;
    const route = this.#targets.of(planned.route);
    if (route?.breaker.config.singleRoute !== "try") return undefined;
    const forced = this.#pick({ withPaused: true, withOpen: true });
    return forced && { ...forced, isForced: true };
  }

  /**
   * Takes the probes of half-open breakers. A target whose probe another call has taken is left
   * out.
   */
  #takeProbes(...targets: readonly Target[]): boolean {
    const taken = targets.find(({ breaker }) => !breaker.takeProbe(this.#targets.clock()));
    if (taken === undefined) return true;
    this.#skipped ??= new Set();
    this.#skipped.add(taken);
    return false;
  }

  /** Repeated requests to a vendor that has already failed this call are limited. */
  #takeRetry({ route }: Destination): boolean {
    if (this.#askedVendors?.has(route.vendor) !== true) {
      route.owner.retries.onCall();
      return true;
    }
    if (route.owner.retries.take()) return true;
    this.#skipped ??= new Set();
    this.#skipped.add(route);
    return false;
  }

  /**
   * Chooses among the candidates that have not failed. @param options whether paused and open ones
   * count too
   */
  #pick({ withPaused = false, withOpen = false } = {}): Destination | undefined {
    const targets = this.#targets;
    const nowMs = targets.clock();
    const isUsable = (target: Target): boolean =>
      withOpen || (target.breaker.state(nowMs) !== "open" && this.#skipped?.has(target) !== true);
    const candidates = this.#fitting().flatMap((planned) => {
      const { priority = 0, weight = 1 } = planned;
      const route = planned.dialect === undefined ? undefined : targets.of(planned.route);
      if (route === undefined || this.#failedRoutes?.has(route) || !isUsable(route)) return [];
      const credentials = route.owner.credentials.filter(
        (credential) =>
          (planned.credential === undefined || planned.credential === credential.credential) &&
          isUsable(credential) &&
          (withPaused || this.#isTaking(route, credential, nowMs)) &&
          !this.#hasFailed(route, credential),
      );
      const { inFlight } = route;
      return credentials.length === 0
        ? []
        : [{ priority, weight, inFlight, planned, route, credentials }];
    });
    const chosen = this.#chooseOne(candidates, ({ route }) => `${route.vendor} ${route.model}`);
    const credential =
      chosen && this.#chooseOne(chosen.credentials, (each) => `${each.vendor} ${each.credential}`);
    if (chosen === undefined || credential === undefined) return undefined;
    const { planned, route } = chosen;
    return destination(planned, route, credential);
  }

  #chooseOne<Each extends Candidate>(
    usable: readonly Each[],
    nameOf: (candidate: Each) => string,
  ): Each | undefined {
    const { conversation } = this.#options;
    return conversation === undefined
      ? chooseCandidate(usable, Math.random())
      : chooseByConversation(usable, conversation, nameOf);
  }

  /** Whether the vendor takes the request now, by what it said of its limits. */
  #isTaking(route: RouteTarget, credential: CredentialTarget, nowMs: number): boolean {
    if ((route.pausedUntilMs.get(credential) ?? 0) > nowMs) return false;
    const quota = route.quotas.get(credential);
    return quota === undefined || quota.takes(this.amount.typical, nowMs);
  }

  #hasFailed(route: RouteTarget, credential: CredentialTarget): boolean {
    const failed = this.#failedPairs;
    if (failed === undefined) return false;
    return failed.some((each) => each.route === route && each.credential === credential);
  }

  /**
   * The routes that take the request; if none does by our figures, those that take the longest
   * ones.
   */
  #fitting(): readonly PlannedRoute[] {
    const limits = this.#routes.map(({ route }) => route.maxContext ?? Infinity);
    if (limits.every((limit) => limit === Infinity)) return this.#routes;
    const failedLimit = this.#last?.failure === "context" ? this.#last.planned.route.maxContext : 0;
    const tokens = Math.max(this.amount.typical, (failedLimit ?? 0) + 1);
    const least = Math.min(tokens, Math.max(...limits));
    return this.#routes.filter((_route, index) => (limits[index] ?? Infinity) >= least);
  }
}

function destination(
  planned: PlannedRoute,
  route: RouteTarget,
  credential: CredentialTarget,
  isOnly = false,
): Destination {
  const isOneOfSeveral = route.owner.credentials.length > 1;
  const sent = isOneOfSeveral ? { ...planned, credential: credential.credential } : planned;
  return {
    planned: sent,
    route,
    credential,
    delayMs: 0,
    wasFailing: route.breaker.hasFailed,
    isOnly,
  };
}

function priorityOf({ planned, credential }: Destination): number {
  // A credential of the same route is an equal candidate if its own priority is equal.
  return (planned.priority ?? 0) * 1_001 + credential.priority;
}
