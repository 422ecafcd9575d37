/** The context of every phase of a call: the caller, and the parts of the gateway that calls share. */
import type { Logger } from "pino";
import type { Ledger } from "../../billing/ledger/ledger.ts";
import type { CallUsage, UnitUsage } from "../../billing/prices/price.ts";
import type { KeyCaller } from "../../core/caller.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import type { ModelConfig, PriceConfig, RouteConfig } from "../../config/config.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Catalogue } from "../catalogue.ts";
import type { RunningCalls } from "../running-calls.ts";
import type { TokenCounter } from "../tokens/counter.ts";
import type { UnlimitedRoutes } from "../unlimited-routes.ts";
import type { Upstream } from "../upstream.ts";
import type { DetachedReplies } from "./disconnect.ts";
import type { MonitoredStreams } from "./hold-monitor.ts";

/** The caller of one call, and the signal that ends it. */
export interface CallContext {
  readonly caller: KeyCaller;
  readonly requestId: string;
  /** Background requests with the same key return the same response. Absent: each request creates one. */
  readonly idempotencyKey?: string | undefined;
  /** Cancelled when the client disconnects or the gateway stops. */
  readonly signal: CancelSignal;
}

/** Computes what calls cost. `discountBp` is the account's discount in hundredths of a percent. */
export interface Pricing {
  /** The price in force when a call starts, in milliseconds since 1970. The call is held, charged and recorded at this
   * price, whatever comes into force meanwhile. */
  priceAt(model: ModelConfig, startMs: number): PriceConfig;
  /** The version of a price, for the record of a call. */
  version(price: PriceConfig): string;
  /** The amount to hold, in nano-USD, rounded up. */
  hold(price: PriceConfig, usage: MaxUsage, discountBp: number): bigint;
  /** The amount to charge, in nano-USD, rounded down. */
  cost(price: PriceConfig, usage: CallUsage, discountBp: number): bigint;
  /** What the vendor of a route charges the operator for a call that started at `startMs`, in nano-USD, rounded down;
   * `undefined`: not known. */
  vendorCost(route: RouteConfig, usage: CallUsage, startMs: number): bigint | undefined;
}

/** The maximum usage of a call. */
export interface MaxUsage extends UnitUsage {
  /** Input tokens. */
  readonly input: number;
  /** Output tokens. */
  readonly output: number;
}

/** The parts of a process that all calls share. */
export interface PipelineDeps {
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  readonly pricing: Pricing;
  readonly upstream: Upstream;
  readonly calls: RunningCalls;
  readonly streams: MonitoredStreams;
  readonly unlimitedRoutes: Pick<UnlimitedRoutes, "has" | "add">;
  readonly detached: DetachedReplies;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly counter: TokenCounter;
}
