/** Asks vendors: the routes of a model in order, each with its limit of calls in flight. */
import type { Logger } from "pino";
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ModelConfig, RouteConfig, VendorConfig } from "../config/config.ts";
import { refusalBytesMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { HttpFailure } from "../http/failure.ts";
import type { Metrics } from "../metrics.ts";
import type { OperationName, Vendor, VendorCall, VendorReply } from "../vendor/vendor.ts";
import type { PlannedRoute } from "./door.ts";
import { failureError, readRefusal, type Refusal, retryAfterSeconds } from "./upstream-refusal.ts";
import { type VendorStanding, VendorWatch } from "./vendor-watch.ts";

/** Opens replies. */
export interface Upstream {
  /** The model's routes in order, each with the dialect to ask in: the caller's where its vendor speaks it,
   * else the one that the vendor speaks best. For another operation than text generation only those whose
   * vendors can be asked for it in the caller's dialect: maybe none.
   * @param dialect the caller's; `undefined`: it has none */
  plan(
    model: ModelConfig,
    dialect: Dialect | undefined,
    operation?: OperationName,
  ): readonly PlannedRoute[];
  /**
   * Asks the model's vendors in order until one accepts or passes judgement on the request. Another
   * route is tried only where nothing can have been done: no connection, 429, 5xx, or a refused
   * credential.
   *
   * @throws GatewayError
   */
  open(ask: Ask): Promise<OpenReply>;
  /** How a vendor did last, as this process sees it. */
  standingOf(vendor: string): VendorStanding;
  /** A vendor has failed at something that was not asked here. @param what as operators read it */
  noteFailure(vendor: string, what: string): void;
}

/** What to ask. */
export interface Ask {
  readonly routes: readonly PlannedRoute[];
  /** What to ask for. Default: a text generation. */
  readonly operation?: OperationName | undefined;
  /** Asks a vendor. Default: in the dialect that is planned, for the operation. */
  readonly send?: ((vendor: Vendor, call: VendorCall) => Promise<VendorReply>) | undefined;
  /** The call for a route. */
  readonly callFor: (planned: PlannedRoute) => VendorCall;
  /** Told of each vendor before it is asked. */
  readonly onAttempt: (vendor: string) => void;
  /** Told of each vendor that could not take the call: the next one is asked. */
  readonly onFailed?: (vendor: string, error: GatewayError) => void;
}

/** A vendor's answer that goes to the customer. */
export interface OpenReply {
  readonly planned: PlannedRoute;
  readonly reply: VendorReply;
  /** The vendor refused the request as invalid: this is its whole answer. `undefined`: it accepted. */
  readonly refusal: { readonly error: GatewayError; readonly body: Buffer } | undefined;
  /** Gives the vendor's place back, and stops it where its reply has not ended. Call it once. */
  close(): void;
}

export interface UpstreamOptions {
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
  readonly #watch = new VendorWatch();

  constructor(options: UpstreamOptions) {
    this.#options = options;
  }

  plan(
    model: ModelConfig,
    dialect: Dialect | undefined,
    operation?: OperationName,
  ): readonly PlannedRoute[] {
    if (operation !== undefined) {
      const can = ({ vendor }: RouteConfig): boolean =>
        dialect !== undefined &&
        this.#options.vendors.get(vendor)?.[operation]?.dialects.has(dialect) === true;
      return model.routes.filter(can).map((route) => this.#planned(route, dialect));
    }
    return model.routes.map((route) => {
      const spoken = this.#options.vendors.get(route.vendor)?.dialects;
      const speaksIt = dialect !== undefined && spoken?.has(dialect);
      const [best] = spoken ?? [];
      return this.#planned(route, speaksIt ? dialect : best);
    });
  }

  #planned(route: RouteConfig, dialect: Dialect | undefined): PlannedRoute {
    const config = this.#options.configs.get(route.vendor);
    if (config === undefined) return { route, dialect };
    const { baseUrl: vendorUrl, onDisconnect } = config;
    const isDrained = onDisconnect === "drain";
    return { route, dialect, vendorUrl, ...(isDrained && { isDrained }) };
  }

  standingOf(vendor: string): VendorStanding {
    return { ...this.#watch.of(vendor), inFlight: this.#inFlight.get(vendor) ?? 0 };
  }

  noteFailure(vendor: string, what: string): void {
    this.#watch.failed(vendor, what);
  }

  async open(ask: Ask): Promise<OpenReply> {
    let last: GatewayError | undefined;
    for (const planned of ask.routes) {
      const result = await this.#attempt(ask, planned);
      if (!(result instanceof GatewayError)) return result;
      ask.onFailed?.(planned.route.vendor, result);
      last = result;
    }
    throw last ?? unserved(undefined);
  }

  /** Asks one vendor. Resolves to an error where another route may be tried. */
  async #attempt(ask: Ask, planned: PlannedRoute): Promise<OpenReply | GatewayError> {
    const vendor = this.#options.vendors.get(planned.route.vendor);
    if (vendor === undefined || planned.dialect === undefined) return unserved(planned.route);
    if (!this.#enter(vendor.name)) {
      this.#count(vendor.name, "overloaded");
      return overloaded();
    }
    let isOpen = false;
    const startMs = performance.now();
    try {
      ask.onAttempt(vendor.name);
      const call = ask.callFor(planned);
      const reply = await (ask.send ?? sendOf(ask.operation))(vendor, call);
      const isAccepted = reply.status >= 200 && reply.status < 300;
      const judged = isAccepted ? undefined : await judge(reply, vendor);
      if (judged !== undefined && !judged.refusal.pass) {
        return this.#refuse(judged.refusal, { vendor: vendor.name, status: reply.status });
      }
      this.#watch.answered(vendor.name, performance.now() - startMs);
      this.#count(vendor.name, judged ? "refused" : "ok");
      isOpen = true;
      const refusal = judged && { error: judged.refusal.error, body: judged.body };
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

  #refuse(refusal: Refusal, at: { vendor: string; status: number }): GatewayError {
    const { error, alarm, mayRetry } = refusal;
    this.#watch.failed(at.vendor, `status ${at.status}`);
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
    if (!mayRetry) throw error;
    return error;
  }

  #failed(error: unknown, vendor: string): GatewayError {
    const failure = error instanceof GatewayError ? error.cause : error;
    if (!(failure instanceof HttpFailure)) throw error;
    const { kind } = failure;
    const isConnect = kind === "connect" || kind === "connect_timeout";
    this.#count(vendor, isConnect ? "connect" : kind === "reset" ? "failed" : kind);
    if (kind === "aborted") throw error;
    this.#watch.failed(vendor, kind);
    const fields = { vendor, failure: kind, cause: failure.message };
    this.#options.log.warn(fields, "a vendor gave no reply");
    const told = error instanceof GatewayError ? error : failureError(kind, failure);
    // The request has been sent: it may be running, and another route would run it twice.
    if (!isConnect) throw told;
    return told;
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

function sendOf(operation: OperationName | undefined): NonNullable<Ask["send"]> {
  return (vendor, call) => {
    const send = operation === undefined ? undefined : vendor[operation]?.send;
    return send === undefined ? vendor.exchange(call) : send(call);
  };
}

/** Reads a refusal whole. */
async function judge(
  reply: VendorReply,
  vendor: Vendor,
): Promise<{ refusal: Refusal; body: Buffer }> {
  const { status, headers } = reply;
  const body = await reply.body.whole(refusalBytesMax);
  const fault = vendor.faultOf?.(status, body);
  const retryAfter = retryAfterSeconds(headers) ?? vendor.retryAfterOf?.(body);
  return { refusal: readRefusal({ status, headers, body, fault, retryAfter }), body };
}

function overloaded(): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_OVERLOADED,
    "The model runs as many calls as it can; retry after the time in the retry-after header",
  );
}

function unserved(route: RouteConfig | undefined): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_ERROR,
    "The model cannot be served in this style; try another model",
    { internal: `no vendor for route ${route?.vendor ?? "(none)"}` },
  );
}
