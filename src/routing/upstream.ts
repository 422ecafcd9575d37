/**
 * Finds the routes of a model, and makes attempts at vendors within their limits of calls in
 * flight.
 */
import type { Logger } from "pino";
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig, PriceConfig, RouteConfig, VendorConfig } from "../config/config.ts";
import {
  disconnectGraceMs,
  refusalKindsMax,
  refusalRecordsMax,
  refusalWindowMs,
} from "../core/limits.ts";
import { Repeats } from "../core/repeats.ts";
import { isTierUnpriced } from "../config/tier-prices.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { Metrics } from "../observe/metrics.ts";
import { UnreadableReplyError } from "../wire/json/value.ts";
import { EventTooLongError } from "../wire/sse/event-stream.ts";
import { HttpFailure } from "../http/failure.ts";
import { memberName } from "../core/member-list.ts";
import { unusableReply } from "./upstream-refusal.ts";
import type { OperationName, Vendor, VendorCall } from "../provider/vendor.ts";
import type { VendorReply } from "../provider/reply.ts";
import type { PlannedRoute } from "./planned-route.ts";
import type { PreparedCall } from "./prepared-call.ts";
import type { Destination, RequestAmount } from "./attempt-plan.ts";
import { Attempts, type AttemptsOptions } from "./attempts.ts";
import type { AttemptFailure } from "./breaker.ts";
import { routePriorities } from "./choice.ts";
import { FreeRequests } from "./free-requests.ts";
import { JobRouting } from "./job-routing.ts";
import { average, type Targets } from "./targets.ts";
import { Attempt, type AttemptResult, type FailedAttempt } from "./attempt.ts";
import type { Limiter, LimitRefusal, LimitSubject, Ticket } from "../limits/limiter.ts";
import {
  attemptFailureOf,
  attemptFailureOfKind,
  failureError,
  limited,
  overloaded,
  readRefused,
  retryAfterMs,
  type Refusal,
} from "./upstream-refusal.ts";

/** Sends requests to vendors. */
export interface Upstream {
  /**
   * Returns the model's routes, each with its dialect: the caller's dialect if the vendor speaks
   * it, else the vendor's preferred one. For an operation other than text generation it returns
   * only the routes whose vendors offer it in the caller's dialect, possibly none.
   * @param dialect the caller's; undefined if it has none
   */
  plan(
    model: ModelConfig,
    dialect: Dialect | undefined,
    operation?: OperationName,
  ): readonly PlannedRoute[];
  /** Whether a call may go to another route or credential than the first, healthy or not. */
  hasChoice(routes: readonly PlannedRoute[]): boolean;
  /** Plans the attempts of one call. */
  attempts(options: AttemptsOptions): Attempts;
  /**
   * Takes a slot of a destination, within the limits of its vendor and credential. @param amount of
   * the request
   */
  reserve(
    destination: Destination,
    amount: RequestAmount,
  ): Promise<Attempt | FailedAttempt> | Attempt | FailedAttempt;
  /**
   * Sends the request of an attempt. Resolves to the vendor's answer, or to the error.
   *
   * @param operation `undefined`: text generation
   */
  send(
    attempt: Attempt,
    request: AttemptRequest,
    operation: OperationName | undefined,
  ): Promise<AttemptResult>;
  /**
   * Raises an alarm if a reply's usage has unknown figures or a tier without a price, because the
   * vendor may bill them.
   *
   * @param price of the call. Default: its tier is not checked
   */
  reportUsage(route: RouteConfig, usage: Usage | undefined, price?: PriceConfig): void;
  /** Records a failure outside these attempts. @param what a text for operators */
  reportFailure(vendor: string, what: string): void;
  readonly targets: Targets;
  /** Chooses the route and credential of a job. */
  readonly jobs: JobRouting;
  /** Requests that cost nothing. */
  readonly free: FreeRequests;
}

/** A request for a vendor. */
export interface AttemptRequest extends VendorCall {
  /**
   * Sends the request. Absent if it is sent in the planned dialect, for the operation. @throws
   * HttpFailure
   */
  readonly send?: PreparedCall["send"];
}

interface UpstreamOptions {
  readonly targets: Targets;
  /** Enforces the limits of credentials. Default: they have no limits. */
  readonly limiter?: Pick<Limiter, "admit" | "end"> | undefined;
  readonly metrics: Metrics;
  readonly log: Logger;
}

export function createUpstream(options: UpstreamOptions): Upstream {
  return new RoutedUpstream(options);
}

/**
 * Log lines about unknown figures in the life of a process: a vendor can invent any number of
 * names.
 */
const toldUnknownMax = 100;

/** Bounds the lines of failed attempts. After a minute, one line has the number of the others. */
function createRepeats(log: UpstreamOptions["log"], text: string): Repeats<object> {
  return new Repeats({
    max: refusalRecordsMax,
    windowMs: refusalWindowMs,
    kindsMax: refusalKindsMax,
    onEnd: ({ count, first }) => log.warn({ ...first, count }, text),
  });
}

class RoutedUpstream implements Upstream {
  readonly targets: Targets;
  readonly jobs: JobRouting;
  readonly free: FreeRequests;
  readonly #options: UpstreamOptions;
  /** Unknown figures that were logged, by vendor. */
  readonly #toldUnknown = new Set<string>();
  /** Attempts without a reply, and refusals of the operator's account: an outage has thousands. */
  readonly #silences: Repeats<object>;
  readonly #refusals: Repeats<object>;
  readonly #plans = new WeakMap<ModelConfig, Map<string, readonly PlannedRoute[]>>();

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#silences = createRepeats(options.log, "further attempts got no reply from the vendor");
    this.#refusals = createRepeats(
      options.log,
      "the vendor has refused further attempts like this",
    );
    this.targets = options.targets;
    this.jobs = new JobRouting(options);
    this.free = new FreeRequests(options);
  }

  plan(
    model: ModelConfig,
    dialect: Dialect | undefined,
    operation?: OperationName,
  ): readonly PlannedRoute[] {
    let plans = this.#plans.get(model);
    if (plans === undefined) this.#plans.set(model, (plans = new Map()));
    const key = `${dialect} ${operation}`;
    let plan = plans.get(key);
    if (plan === undefined) plans.set(key, (plan = this.#plan(model, dialect, operation)));
    return plan;
  }

  #plan(
    model: ModelConfig,
    dialect: Dialect | undefined,
    operation?: OperationName,
  ): readonly PlannedRoute[] {
    const priorities = routePriorities(model.routes);
    return model.routes.flatMap((route, index) => {
      const vendor = this.targets.vendor(route.vendor);
      const [client] = vendor?.credentials.map((credential) => credential.client) ?? [];
      const shares = { priority: priorities[index] ?? 0, weight: route.weight ?? 1 };
      const details = vendor && {
        vendorUrl: vendor.config.baseUrl,
        fileBuckets: vendor.config.fileBuckets,
        unknownBetas: vendor.config.unknownBetas,
        detachedReadMs: detachedReadMs(vendor.config, model),
      };
      const name = memberName(`${route.vendor}/${route.model}`);
      const planned = { route, name, detachedReadMs: 0, ...details, ...shares };
      if (operation !== undefined) {
        const canServe = dialect !== undefined && client?.[operation]?.dialects.has(dialect);
        return canServe ? [{ ...planned, dialect }] : [];
      }
      const spoken = client?.dialects;
      const [best] = spoken ?? [];
      return [{ ...planned, dialect: dialect && spoken?.has(dialect) ? dialect : best }];
    });
  }

  hasChoice(routes: readonly PlannedRoute[]): boolean {
    const [planned] = routes;
    if (planned === undefined || routes.length > 1) return true;
    return (this.targets.of(planned.route)?.owner.credentials.length ?? 0) > 1;
  }

  attempts(options: AttemptsOptions): Attempts {
    return new Attempts(this.targets, options);
  }

  reportFailure(vendor: string, what: string): void {
    this.targets.vendor(vendor)?.credentials[0].last.failed(what);
  }

  reserve(
    destination: Destination,
    amount: RequestAmount,
  ): Promise<Attempt | FailedAttempt> | Attempt | FailedAttempt {
    const { limits } = destination.credential;
    if (limits === undefined) return this.#take(destination, amount, undefined);
    return this.#admit(limits, amount).then((verdict) =>
      verdict?.isAdmitted === false
        ? { error: limited(verdict.retryMs), failure: "limited", isSent: false }
        : this.#take(destination, amount, verdict),
    );
  }

  #take(
    destination: Destination,
    amount: RequestAmount,
    ticket: Ticket | undefined,
  ): Attempt | FailedAttempt {
    const { owner } = destination.route;
    if (owner.inFlight >= (owner.config.maxInFlight ?? Number.POSITIVE_INFINITY)) {
      this.endLimit(ticket, 0);
      this.#count(owner.config.name, "overloaded");
      return { error: overloaded(), failure: "overloaded", isSent: false };
    }
    const attempt = new Attempt(this, destination, ticket);
    if (destination.isOnly !== true) attempt.countSent(amount);
    return attempt;
  }

  async send(
    attempt: Attempt,
    request: AttemptRequest,
    operation: OperationName | undefined,
  ): Promise<AttemptResult> {
    const { destination } = attempt;
    try {
      const vendor = destination.credential.client;
      const reply = await send(vendor, operation, request);
      const isAccepted = reply.status >= 200 && reply.status < 300;
      const read = isAccepted ? undefined : await readRefused(reply, vendor).catch(refusedAlready);
      attempt.readQuota(reply.headers);
      if (read === undefined) return attempt.answered(reply);
      if (read.refusal.isRelayed) {
        return attempt.answered(reply, { error: read.refusal.error, body: read.body });
      }
      attempt.usedTokens = 0;
      attempt.close();
      return this.#refused(read.refusal, { destination, reply });
    } catch (error) {
      if (error instanceof HttpFailure && !error.isSent) attempt.usedTokens = 0;
      attempt.close();
      return this.failed(error, destination);
    }
  }

  /** Counts an attempt against the limits of its credential. Undefined if nothing counts here. */
  async #admit(
    subject: LimitSubject,
    amount: RequestAmount,
  ): Promise<Ticket | LimitRefusal | undefined> {
    const tokens = subject.limits.tpm === undefined ? 0 : amount.most;
    const verdict = await this.#options.limiter?.admit({ subjects: [subject], tokens });
    if (verdict?.isAdmitted === false) {
      this.#options.metrics.limitRefusals.inc({ limit: `credential_${verdict.reason}` });
    }
    return verdict;
  }

  /** Ends an attempt towards the limits of its credential. */
  endLimit(ticket: Ticket | undefined, usedTokens: number | undefined): void {
    if (ticket !== undefined) this.#options.limiter?.end(ticket, usedTokens ?? ticket.tokens);
  }

  reportUsage({ vendor, model }: RouteConfig, usage: Usage | undefined, price?: PriceConfig): void {
    const tier = usage?.serviceTier;
    const isUnpriced = price !== undefined && tier !== undefined && isTierUnpriced(price, tier);
    const unknown = usage?.unknownMembers ?? (isUnpriced ? `service_tier ${tier}` : undefined);
    if (unknown === undefined) return;
    const { metrics, log } = this.#options;
    metrics.upstreamAlarms.inc({ vendor, reason: "usage_unknown" });
    const key = `${vendor} ${unknown}`;
    if (this.#toldUnknown.has(key) || this.#toldUnknown.size >= toldUnknownMax) return;
    this.#toldUnknown.add(key);
    log.error(
      { vendor, vendorModel: model, members: unknown },
      "a vendor reports usage that the gateway does not know: compare its invoice with the charges, and update the gateway",
    );
  }

  /** Records a usable answer of an attempt that began at `startMs`. */
  succeeded(destination: Destination, startMs: number, isRefusal: boolean): void {
    const { route, credential } = destination;
    const durationMs = performance.now() - startMs;
    this.#count(route.vendor, isRefusal ? "refused" : "ok");
    route.pace.firstContentMs = average(route.pace.firstContentMs, durationMs);
    for (const target of [route, credential]) {
      target.last.answered(durationMs);
      this.targets.succeeded(target, startMs);
    }
  }

  #refused(
    refusal: Refusal,
    { destination, reply }: { readonly destination: Destination; readonly reply: VendorReply },
  ): FailedAttempt {
    const { error, alarm, canRetry } = refusal;
    const { status } = reply;
    const { route, credential } = destination;
    const { vendor } = route;
    const isLimit = error.code === ErrorCode.RATE_LIMIT_EXCEEDED;
    this.#count(vendor, isLimit ? "rate_limited" : "failed");
    if (alarm !== undefined) {
      const { metrics, log } = this.#options;
      metrics.upstreamAlarms.inc({ vendor, reason: alarm });
      const fields = { vendor, credential: credential.credential, status, alarm };
      const kind = `${vendor} ${credential.credential} ${alarm}`;
      if (this.#refusals.passes(kind, () => fields)) {
        log.error(
          fields,
          "a vendor refuses the operator's account: check its credential, balance and model name",
        );
      }
    }
    const failure = canRetry ? attemptFailureOf(status, refusal) : undefined;
    this.#record(destination, failure, `status ${status}`);
    return { error, failure, retryAfterMs: retryAfterMs(reply.headers), isSent: false };
  }

  /**
   * Classifies an error. @throws the error itself if it was aborted, or is not a failure of the
   * vendor
   */
  failed(error: unknown, destination: Destination): FailedAttempt {
    const { vendor } = destination.route;
    const cause = error instanceof GatewayError ? error.cause : error;
    if (!(cause instanceof HttpFailure)) return this.#unusable(error, destination);
    const { kind } = cause;
    const isConnect = kind === "connect" || kind === "connect_timeout";
    this.#count(vendor, isConnect ? "connect" : kind === "reset" ? "failed" : kind);
    if (kind === "aborted") throw error;
    const { message } = cause;
    const fields = { vendor, failure: kind, cause: message };
    if (this.#silences.passes(`${vendor} ${kind}`, () => fields)) {
      this.#options.log.warn(fields, "a vendor gave no reply");
    }
    const failure = attemptFailureOfKind(kind);
    this.#record(destination, failure, kind);
    // A job may be running: another route would run it twice.
    const isJob = error instanceof GatewayError;
    const reported = isJob ? error : failureError(kind, cause);
    return { error: reported, failure: isJob ? undefined : failure, isSent: cause.isSent };
  }

  /**
   * A reply came, but not one that can be passed on. @throws the error itself if it is another's
   * fault
   */
  #unusable(error: unknown, destination: Destination): FailedAttempt {
    const reported = unusableError(error);
    if (reported === undefined) throw error;
    this.#count(destination.route.vendor, "failed");
    this.#record(destination, "server", "unusable reply");
    const { internal } = reported;
    const { vendor } = destination.route;
    this.#options.log.warn({ vendor, internal }, "a vendor sent a reply that cannot be used");
    return { error: reported, failure: "server", isSent: true };
  }

  #record(
    { route, credential }: Destination,
    failure: AttemptFailure | undefined,
    what: string,
  ): void {
    route.last.failed(what);
    credential.last.failed(what);
    if (failure === "credential") this.targets.failed(credential, failure);
    else if (failure !== undefined && failure !== "rate_limit") this.targets.failed(route, failure);
  }

  #count(vendor: string, outcome: string): void {
    this.#options.metrics.countAttempt(vendor, outcome);
  }
}

/** The customer's error for a reply that cannot be read; undefined if the error is another. */
function unusableError(error: unknown): GatewayError | undefined {
  if (error instanceof GatewayError) {
    return error.code === ErrorCode.UPSTREAM_ERROR ? error : undefined;
  }
  const isUnreadable = error instanceof UnreadableReplyError || error instanceof EventTooLongError;
  return isUnreadable ? unusableReply(error.message) : undefined;
}

function send(
  vendor: Vendor,
  operation: OperationName | undefined,
  call: AttemptRequest,
): Promise<VendorReply> {
  if (call.send !== undefined) return call.send(vendor, call.signal);
  const other = operation === undefined ? undefined : vendor[operation];
  return other === undefined ? vendor.exchange(call) : other.send(call);
}

/**
 * A refusal stays a refusal if its body breaks off or its client disconnects: its input is free
 * (R-MON-11).
 */
function refusedAlready(error: unknown): never {
  if (error instanceof HttpFailure) error.isSent = false;
  throw error;
}

/**
 * Returns the time for which a reply is read after its client disconnected; Infinity reads to its
 * end.
 */
export function detachedReadMs(
  { onDisconnect, disconnectGraceMs: graceMs = disconnectGraceMs }: VendorConfig,
  { isReasoning = false }: ModelConfig,
): number {
  if (onDisconnect === "abort") return 0;
  return onDisconnect === "drain" || isReasoning ? Number.POSITIVE_INFINITY : graceMs;
}
