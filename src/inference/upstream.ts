/** Finds the routes of a model, and makes attempts at vendors within their limits of calls in flight. */
import type { Logger } from "pino";
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ModelConfig, RouteConfig, VendorConfig } from "../config/config.ts";
import { disconnectGraceMs, refusalBytesMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { Metrics } from "../core/metrics.ts";
import { HttpFailure } from "../http/failure.ts";
import type { OperationName, Vendor, VendorCall } from "../vendor/vendor.ts";
import type { VendorReply } from "../vendor/reply.ts";
import type { PlannedRoute, PreparedCall } from "./pipeline/adapter.ts";
import { failureError, readRefusal, retryAfterSeconds, type Refusal } from "./upstream-refusal.ts";

/** Sends requests to vendors. */
export interface Upstream {
  /** The model's routes in order, each with its dialect: the caller's where the vendor speaks it, else the vendor's
   * preferred one. For an operation other than text generation only the routes whose vendors offer it in the caller's
   * dialect, possibly none.
   * @param dialect the caller's; `undefined`: it has none */
  plan(
    model: ModelConfig,
    dialect: Dialect | undefined,
    operation?: OperationName,
  ): readonly PlannedRoute[];
  /** Makes one attempt. Resolves to the vendor's answer, or to the error. */
  attempt(planned: PlannedRoute, options: AttemptOptions): Promise<AttemptResult>;
  /** The error for a model without a usable route. */
  unserved(): GatewayError;
  /** The health of a vendor, as this process sees it. */
  vendorHealth(vendor: string): VendorHealth;
  /** Records a failure of a vendor outside these attempts. @param what a text for operators */
  reportFailure(vendor: string, what: string): void;
}

/** Options of one attempt. */
interface AttemptOptions {
  /** The operation. Default: text generation. */
  readonly operation?: OperationName | undefined;
  /** Builds the request, once the vendor has a free slot. */
  prepare(): AttemptRequest;
}

/** A request for a vendor. */
interface AttemptRequest extends VendorCall {
  /** Sends the request. Absent: it is sent in the planned dialect, for the operation. @throws HttpFailure */
  readonly send?: PreparedCall["send"];
}

/** The result of one attempt. */
type AttemptResult = OpenReply | FailedAttempt;

/** An attempt without an answer for the customer. */
interface FailedAttempt {
  readonly error: GatewayError;
  /** Whether no other route is tried: the request may be running, or would fail there too. */
  readonly isFinal: boolean;
}

/** A vendor's answer for the customer. */
export interface OpenReply {
  readonly planned: PlannedRoute;
  readonly reply: VendorReply;
  /** The vendor's whole answer, where it refused the request as invalid; `undefined`: it accepted. */
  readonly refusal: { readonly error: GatewayError; readonly body: Buffer } | undefined;
  readonly error?: undefined;
  /** Releases the vendor's slot, and stops a vendor whose reply has not ended. Call it once. */
  close(): void;
}

interface UpstreamOptions {
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly configs: ReadonlyMap<string, VendorConfig>;
  readonly metrics: Metrics;
  readonly log: Logger;
}

export function createUpstream(options: UpstreamOptions): Upstream {
  return new RoutedUpstream(options);
}

class RoutedUpstream implements Upstream {
  readonly #options: UpstreamOptions;
  readonly #inFlight = new Map<string, number>();
  readonly #health = new VendorHealthLog();

  constructor(options: UpstreamOptions) {
    this.#options = options;
  }

  plan(
    model: ModelConfig,
    dialect: Dialect | undefined,
    operation?: OperationName,
  ): readonly PlannedRoute[] {
    if (operation !== undefined) {
      const canServe = ({ vendor }: RouteConfig): boolean =>
        dialect !== undefined &&
        this.#options.vendors.get(vendor)?.[operation]?.dialects.has(dialect) === true;
      return model.routes.filter(canServe).map((route) => this.#planned(model, route, dialect));
    }
    return model.routes.map((route) => {
      const spoken = this.#options.vendors.get(route.vendor)?.dialects;
      const speaksIt = dialect !== undefined && spoken?.has(dialect);
      const [best] = spoken ?? [];
      return this.#planned(model, route, speaksIt ? dialect : best);
    });
  }

  #planned(model: ModelConfig, route: RouteConfig, dialect: Dialect | undefined): PlannedRoute {
    const config = this.#options.configs.get(route.vendor);
    if (config === undefined) return { route, dialect, detachedReadMs: 0 };
    return {
      route,
      dialect,
      vendorUrl: config.baseUrl,
      detachedReadMs: detachedReadMs(config, model),
    };
  }

  vendorHealth(vendor: string): VendorHealth {
    return { ...this.#health.of(vendor), inFlight: this.#inFlight.get(vendor) ?? 0 };
  }

  reportFailure(vendor: string, what: string): void {
    this.#health.failed(vendor, what);
  }

  async attempt(planned: PlannedRoute, options: AttemptOptions): Promise<AttemptResult> {
    const vendor = this.#options.vendors.get(planned.route.vendor);
    if (vendor === undefined || planned.dialect === undefined) {
      return { error: unserved(planned.route), isFinal: false };
    }
    if (!this.#enter(vendor.name)) {
      this.#count(vendor.name, "overloaded");
      return { error: overloaded(), isFinal: false };
    }
    let isOpen = false;
    const startMs = performance.now();
    try {
      const call = options.prepare();
      const reply = await send(vendor, options.operation, call);
      const isAccepted = reply.status >= 200 && reply.status < 300;
      const read = isAccepted ? undefined : await readRefused(reply, vendor).catch(refusedAlready);
      if (read !== undefined && !read.refusal.isRelayed) {
        return this.#refused(read.refusal, { vendor: vendor.name, status: reply.status });
      }
      this.#health.answered(vendor.name, performance.now() - startMs);
      this.#count(vendor.name, read ? "refused" : "ok");
      isOpen = true;
      const refusal = read && { error: read.refusal.error, body: read.body };
      const close = (): void => {
        reply.body.cancel();
        this.#leave(vendor.name);
      };
      return { planned, reply, refusal, close };
    } catch (error) {
      return this.#failed(error, vendor.name);
    } finally {
      if (!isOpen) this.#leave(vendor.name);
    }
  }

  unserved(): GatewayError {
    return unserved(undefined);
  }

  #refused(refusal: Refusal, at: { vendor: string; status: number }): FailedAttempt {
    const { error, alarm, canRetry } = refusal;
    this.#health.failed(at.vendor, `status ${at.status}`);
    const isLimit = error.code === ErrorCode.RATE_LIMIT_EXCEEDED;
    this.#count(at.vendor, isLimit ? "rate_limited" : "failed");
    if (alarm !== undefined) {
      const { metrics, log } = this.#options;
      metrics.upstreamAlarms.inc({ vendor: at.vendor, reason: alarm });
      log.error(
        { ...at, alarm },
        "a vendor refuses the gateway itself: act on its account or route",
      );
    }
    return { error, isFinal: !canRetry };
  }

  /** Classifies an error. @throws the error itself where it was aborted, or is not a failure of the vendor */
  #failed(error: unknown, vendor: string): FailedAttempt {
    const failure = error instanceof GatewayError ? error.cause : error;
    if (!(failure instanceof HttpFailure)) throw error;
    const { kind } = failure;
    const isConnect = kind === "connect" || kind === "connect_timeout";
    this.#count(vendor, isConnect ? "connect" : kind === "reset" ? "failed" : kind);
    if (kind === "aborted") throw error;
    this.#health.failed(vendor, kind);
    const fields = { vendor, failure: kind, cause: failure.message };
    this.#options.log.warn(fields, "a vendor gave no reply");
    const reported = error instanceof GatewayError ? error : failureError(kind, failure);
    // A request that was sent may be running: another route would run it twice.
    return { error: reported, isFinal: !isConnect || failure.isSent };
  }

  #enter(name: string): boolean {
    const running = this.#inFlight.get(name) ?? 0;
    const max = this.#options.configs.get(name)?.maxInFlight ?? Number.POSITIVE_INFINITY;
    if (running >= max) return false;
    this.#inFlight.set(name, running + 1);
    return true;
  }

  #leave(name: string): void {
    this.#inFlight.set(name, (this.#inFlight.get(name) ?? 1) - 1);
  }

  #count(vendor: string, outcome: string): void {
    this.#options.metrics.countAttempt(vendor, outcome);
  }
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

/** A refusal whose body broke off, or that nobody waits for any more, is a refusal: its input is free (R-MON-11). */
function refusedAlready(error: unknown): never {
  if (error instanceof HttpFailure) error.isSent = false;
  throw error;
}

/** Reads the body of a refusal and classifies it. */
async function readRefused(
  reply: VendorReply,
  vendor: Vendor,
): Promise<{ refusal: Refusal; body: Buffer }> {
  const { status, headers } = reply;
  const body = await reply.body.whole(refusalBytesMax);
  const fault = vendor.faultOf?.(status, body);
  const retryAfter = retryAfterSeconds(headers) ?? vendor.retryAfterOf?.(body);
  return { refusal: readRefusal({ status, headers, body, fault, retryAfter }), body };
}

/** Tries the routes in order until one answers. @throws GatewayError of the last attempt */
export async function tryRoutes(
  upstream: Upstream,
  routes: readonly PlannedRoute[],
  options: Omit<AttemptOptions, "prepare"> & {
    callFor(planned: PlannedRoute): AttemptRequest;
    /** Called with each failed attempt that is not final. Default: nothing. */
    onFailed?(planned: PlannedRoute, error: GatewayError): void;
  },
): Promise<OpenReply> {
  let last: GatewayError | undefined;
  for (const planned of routes) {
    const { operation } = options;
    const prepare = (): AttemptRequest => options.callFor(planned);
    const attempted = await upstream.attempt(planned, { operation, prepare });
    if (attempted.error === undefined) return attempted;
    if (attempted.isFinal) throw attempted.error;
    options.onFailed?.(planned, attempted.error);
    last = attempted.error;
  }
  throw last ?? upstream.unserved();
}

/** How long a reply is read after its client disconnected, in milliseconds; Infinity: to its end. */
export function detachedReadMs(
  { onDisconnect, disconnectGraceMs: graceMs = disconnectGraceMs }: VendorConfig,
  { isReasoning = false }: ModelConfig,
): number {
  if (onDisconnect === "abort") return 0;
  return onDisconnect === "drain" || isReasoning ? Number.POSITIVE_INFINITY : graceMs;
}

function overloaded(): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_OVERLOADED,
    "The model is at its limit of concurrent calls; retry after the time in the retry-after header",
  );
}

function unserved(route: RouteConfig | undefined): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_ERROR,
    "The model does not support this API style; use another model",
    { internal: `no vendor for route ${route?.vendor ?? "(none)"}` },
  );
}

/** The health of a vendor since the process started. Times in milliseconds since 1970. */
interface VendorHealth {
  /** The number of calls in flight. */
  readonly inFlight: number;
  /** The last failure. */
  readonly failure: { readonly atMs: number; readonly what: string } | undefined;
  /** The last answer, and the time until the head of its reply. */
  readonly success: { readonly atMs: number; readonly durationMs: number } | undefined;
}

type LastOutcomes = Omit<VendorHealth, "inFlight">;

const nothing: LastOutcomes = { failure: undefined, success: undefined };

/** Records the last outcomes of each vendor. */
class VendorHealthLog {
  readonly #byVendor = new Map<string, LastOutcomes>();

  /** The last outcomes of a vendor. */
  of(vendor: string): LastOutcomes {
    return this.#byVendor.get(vendor) ?? nothing;
  }

  /** Records an answer: a reply, or a refusal of the request as invalid. */
  answered(vendor: string, durationMs: number): void {
    this.#byVendor.set(vendor, { ...this.of(vendor), success: { atMs: Date.now(), durationMs } });
  }

  /** Records a failure. @param what the label of the metrics, without any text of the vendor */
  failed(vendor: string, what: string): void {
    this.#byVendor.set(vendor, { ...this.of(vendor), failure: { atMs: Date.now(), what } });
  }
}
