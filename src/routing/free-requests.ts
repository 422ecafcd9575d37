/**
 * Free requests to vendors, such as token counts. They take nothing from calls that are paid for
 * (R-LIM-2): a part of `max_in_flight` only, nothing of the limits of credentials and of the
 * retries of vendors, and no probe of an open breaker. Nor do their failures say anything about
 * calls, since vendors serve and limit such requests apart.
 */
import type { Logger } from "pino";
import { countInFlightShare } from "../core/limits.ts";
import type { Metrics } from "../observe/metrics.ts";
import { HttpFailure } from "../http/failure.ts";
import type { OperationName, VendorCall } from "../provider/vendor.ts";
import type { VendorReply } from "../provider/reply.ts";
import { readRefused, retryAfterMs } from "./upstream-refusal.ts";
import { chooseCandidate } from "./choice.ts";
import type { PlannedRoute } from "./planned-route.ts";
import type { CredentialTarget, RouteTarget, Targets } from "./targets.ts";

/** A free request. */
export interface FreeRequest<Result> {
  readonly operation: OperationName;
  /** Aborted when no client waits for it any longer. */
  readonly signal: AbortSignal;
  /** Time limit of each route. */
  readonly timeoutMs: number;
  /** Builds the request for a route. @param signal ends it */
  callFor(route: PlannedRoute, signal: AbortSignal): VendorCall;
  /**
   * Reads a reply; undefined if it is useless and another route is tried.
   *
   * @param refusal the body of a reply that refuses the client's request as invalid; undefined if
   * it was accepted
   */
  read(reply: VendorReply, refusal: Buffer | undefined): Promise<Result | undefined>;
}

interface FreeRequestsOptions {
  readonly targets: Targets;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** From 0 to 1. Default `Math.random`. */
  readonly random?: () => number;
}

/** Destination of a free request. */
interface Destination {
  readonly planned: PlannedRoute;
  readonly route: RouteTarget;
  readonly credential: CredentialTarget;
}

/**
 * Pause of a route for free requests after a failure or a timeout, and the maximum of a pause that
 * the vendor requests.
 */
const pauseMs = 1_000;
const latePauseMs = 30_000;
const pauseMsMax = 60_000;

/** Sends free requests. */
export class FreeRequests {
  readonly #options: FreeRequestsOptions;
  readonly #pausedUntilMs = new Map<RouteTarget, number>();

  constructor(options: FreeRequestsOptions) {
    this.#options = options;
  }

  /**
   * Asks one route after another.
   *
   * @returns undefined if none can be asked, or all have failed
   * @throws HttpFailure if the signal ended it
   */
  async ask<Result>(
    routes: readonly PlannedRoute[],
    request: FreeRequest<Result>,
  ): Promise<Result | undefined> {
    const left = new Set(routes);
    for (;;) {
      const destination = this.#choose(left);
      if (destination === undefined) return undefined;
      left.delete(destination.planned);
      const result = await this.#askOne(destination, request);
      if (result !== undefined) return result;
    }
  }

  #choose(routes: ReadonlySet<PlannedRoute>): Destination | undefined {
    const { targets, random = Math.random } = this.#options;
    const nowMs = targets.clock();
    const candidates = [...routes].flatMap((planned) => {
      const route = targets.of(planned.route);
      if (route === undefined || !isOpenTo(route, this.#pausedUntilMs.get(route) ?? 0, nowMs)) {
        return [];
      }
      const { priority = 0, weight = 1 } = planned;
      const credentials = route.owner.credentials.filter(
        (each) => each.breaker.open === undefined && (route.pausedUntilMs.get(each) ?? 0) <= nowMs,
      );
      const credential = chooseCandidate(credentials, random());
      const { inFlight } = route;
      return credential ? [{ priority, weight, inFlight, planned, route, credential }] : [];
    });
    return chooseCandidate(candidates, random());
  }

  async #askOne<Result>(
    { planned, route, credential }: Destination,
    request: FreeRequest<Result>,
  ): Promise<Result | undefined> {
    const late = AbortSignal.timeout(request.timeoutMs);
    const call = request.callFor(planned, AbortSignal.any([request.signal, late]));
    const { owner } = route;
    let reply: VendorReply | undefined;
    owner.inFlight++;
    try {
      reply = await credential.client[request.operation]?.send(call);
      if (reply === undefined) return undefined;
      const isAccepted = reply.status >= 200 && reply.status < 300;
      const read = isAccepted ? undefined : await readRefused(reply, credential.client);
      if (read !== undefined && !read.refusal.isRelayed) {
        const waitMs = retryAfterMs(reply.headers) ?? pauseMs;
        return this.#failed(route, `status ${reply.status}`, Math.min(waitMs, pauseMsMax));
      }
      const result = await request.read(reply, read?.body);
      if (result === undefined) return this.#failed(route, "unusable reply", pauseMs);
      this.#options.metrics.countAttempt(route.vendor, read === undefined ? "ok" : "refused");
      return result;
    } catch (error) {
      if (!(error instanceof HttpFailure) || request.signal.aborted) throw error;
      return late.aborted
        ? this.#failed(route, "timeout", latePauseMs)
        : this.#failed(route, error.kind, pauseMs);
    } finally {
      owner.inFlight--;
      reply?.body.cancel();
    }
  }

  #failed(route: RouteTarget, failure: string, waitMs: number): undefined {
    const { targets, metrics, log } = this.#options;
    const { vendor, model } = route;
    metrics.countAttempt(vendor, "failed");
    log.warn({ vendor, vendorModel: model, failure }, "a vendor did not answer a free request");
    this.#pausedUntilMs.set(route, targets.clock() + waitMs);
  }
}

/** Whether a route takes free requests now. */
function isOpenTo({ breaker, owner }: RouteTarget, pausedUntilMs: number, nowMs: number): boolean {
  const { maxInFlight = Number.POSITIVE_INFINITY } = owner.config;
  const hasRoom = owner.inFlight < maxInFlight * countInFlightShare;
  return breaker.open === undefined && hasRoom && pausedUntilMs <= nowMs;
}
