/**
 * Chooses the route and credential of a job: a task, or a submit to a native API. A job goes to one
 * vendor, and stays with the credential that submitted it (R-ERR-5), so the choice is made only
 * before the submit.
 */
import type { ModelConfig } from "../config/config.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { AttemptFailure } from "./breaker.ts";
import { chooseCandidate, routePriorities } from "./choice.ts";
import type { CredentialTarget, RouteTarget, Targets } from "./targets.ts";

/** A vendor and its name of a model. */
export interface JobRoute {
  readonly vendor: string;
  readonly model: string;
}

/** The route and credential of a job. */
export interface JobPlace extends JobRoute {
  /** The name of its credential; empty for the vendor's only one, or its first. */
  readonly credential: string;
}

interface JobRoutingOptions {
  readonly targets: Targets;
  readonly limiter?: Pick<Limiter, "admit" | "end"> | undefined;
  readonly metrics: Metrics;
}

/** Chooses destinations of jobs and records their results. */
export class JobRouting {
  readonly #options: JobRoutingOptions;

  constructor(options: JobRoutingOptions) {
    this.#options = options;
  }

  /**
   * Chooses among the routes of a model that can take a job: by priority, then weight; those whose
   * breaker is open only if there is no other.
   */
  chooseRoute<Each extends JobRoute>(
    { routes }: Pick<ModelConfig, "routes">,
    usable: readonly Each[],
  ): Each | undefined {
    if (usable.length <= 1) return usable[0];
    const priorities = routePriorities(routes);
    const candidates = usable.map((each) => {
      const at = routes.findIndex((r) => r.vendor === each.vendor && r.model === each.model);
      const weight = routes[at]?.weight ?? 1;
      return { each, priority: priorities[at] ?? 0, weight, inFlight: 0 };
    });
    const healthy = candidates.filter(({ each }) => this.#isHealthy(each));
    const from = healthy.length > 0 ? healthy : candidates;
    return chooseCandidate(from, Math.random())?.each;
  }

  /**
   * Chooses the credential of a route for a job, and counts the submit against its limits.
   *
   * @param tried the credentials that have refused this job
   * @returns its name, empty if the vendor has only one; undefined if none may be asked now
   */
  async chooseCredential(place: JobRoute, tried: ReadonlySet<string>): Promise<string | undefined> {
    const { targets } = this.#options;
    const route = targets.named(place);
    if (route === undefined) return tried.size === 0 ? "" : undefined;
    const isProbe = route.breaker.state(targets.clock()) === "half_open";
    if (isProbe && !route.breaker.takeProbe(targets.clock())) return undefined;
    const { credentials } = route.owner;
    const left = new Set(credentials.filter((each) => !tried.has(nameOf(each, route))));
    // A job that has not been refused yet has nothing to lose.
    let isLastResort = tried.size === 0;
    while (left.size > 0) {
      const nowMs = targets.clock();
      const usable = [...left].filter((each) => isUsable(route, each, nowMs));
      const chosen = chooseCandidate(usable, Math.random());
      if (chosen === undefined && !isLastResort) return undefined;
      const credential = chosen ?? chooseCandidate([...left], Math.random());
      if (credential === undefined) return undefined;
      left.delete(credential);
      if (chosen === undefined) isLastResort = false;
      const isGranted = chosen === undefined || chosen.breaker.takeProbe(nowMs);
      if (isGranted && (await this.#isWithinLimits(credential))) return nameOf(credential, route);
    }
    return undefined;
  }

  /** The vendor took a job that was submitted at `startMs` of the clock. */
  accepted(place: JobPlace, startMs: number): void {
    const { targets } = this.#options;
    const found = this.#find(place);
    if (found === undefined) return;
    for (const target of found) {
      target.last.answered(targets.clock() - startMs);
      targets.succeeded(target, startMs);
    }
  }

  /**
   * A vendor did not take a job, or refused to report about it. @param what a text for operators
   */
  failed(
    place: JobPlace,
    failure: AttemptFailure,
    { what, retryAfterMs }: { readonly what: string; readonly retryAfterMs?: number | undefined },
  ): void {
    const { targets } = this.#options;
    const found = this.#find(place);
    if (found === undefined) return;
    const [route, credential] = found;
    route.last.failed(what);
    credential.last.failed(what);
    if (failure === "rate_limit") {
      route.pause(credential, { nowMs: targets.clock(), retryAfterMs });
    } else targets.failed(failure === "credential" ? credential : route, failure);
  }

  get clock(): () => number {
    return this.#options.targets.clock;
  }

  #isHealthy(place: JobRoute): boolean {
    const { targets } = this.#options;
    const route = targets.named(place);
    const nowMs = targets.clock();
    if (route === undefined || route.breaker.state(nowMs) === "open") return false;
    return route.owner.credentials.some((each) => isUsable(route, each, nowMs));
  }

  async #isWithinLimits({ limits }: CredentialTarget): Promise<boolean> {
    const { limiter, metrics } = this.#options;
    if (limits === undefined || limiter === undefined) return true;
    const verdict = await limiter.admit({ subjects: [limits], tokens: 0 });
    // The request is short; what runs afterwards is the vendor's job.
    if (verdict.isAdmitted) limiter.end(verdict, 0);
    else metrics.limitRefusals.inc({ limit: `credential_${verdict.reason}` });
    return verdict.isAdmitted;
  }

  #find(place: JobPlace): readonly [RouteTarget, CredentialTarget] | undefined {
    const route = this.#options.targets.named(place);
    const [first, ...others] = route?.owner.credentials ?? [];
    if (route === undefined || first === undefined) return undefined;
    return [route, others.find(({ credential }) => credential === place.credential) ?? first];
  }
}

/** The name by which a job remembers its credential. */
function nameOf({ credential }: CredentialTarget, { owner }: RouteTarget): string {
  return owner.credentials.length === 1 ? "" : credential;
}

function isUsable(route: RouteTarget, credential: CredentialTarget, nowMs: number): boolean {
  if (credential.breaker.state(nowMs) === "open") return false;
  return (route.pausedUntilMs.get(credential) ?? 0) <= nowMs;
}
