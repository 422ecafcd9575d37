/** What a run of a call needs. */
import type { Logger } from "pino";
import type { Ledger } from "../billing/ledger.ts";
import type { CallUsage, UnitUsage } from "../billing/price.ts";
import type { KeyCaller } from "../caller.ts";
import type { ModelConfig, PriceConfig, RouteConfig } from "../config/config.ts";
import type { Metrics } from "../metrics.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Drains } from "./drains.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { RunningStreams } from "./running-streams.ts";
import type { CallState } from "./state/call-state.ts";
import type { TokenCounter } from "./tokens/counter.ts";
import type { Upstream } from "./upstream.ts";

/** Prices, as billing keeps them. `discountBp` is the account's discount in hundredths of a percent. */
export interface Pricing {
  /** The price that counts for a call which starts at this moment, in milliseconds since 1970: it is held,
   * charged and recorded with this one, whatever comes into force meanwhile. */
  priceAt(model: ModelConfig, startMs: number): PriceConfig;
  /** The version of a price, for the record of a call. */
  version(price: PriceConfig): string;
  /** What to hold, in nano-USD, rounded up. */
  hold(price: PriceConfig, most: MostUsage, discountBp: number): bigint;
  /** What to charge, in nano-USD, rounded down. */
  cost(price: PriceConfig, usage: CallUsage, discountBp: number): bigint;
  /** What the vendor of a route takes of the operator for a call that started at this moment, in nano-USD,
   * rounded down; `undefined`: not known. */
  vendorCost(route: RouteConfig, usage: CallUsage, startMs: number): bigint | undefined;
}

/** The most that a call can use. */
export interface MostUsage extends UnitUsage {
  /** Tokens. */
  readonly input: number;
  /** Tokens. */
  readonly output: number;
}

export interface ExchangeOptions {
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  readonly pricing: Pricing;
  readonly upstream: Upstream;
  readonly calls: RunningCalls;
  readonly streams: RunningStreams;
  readonly drains: Drains;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly counter: TokenCounter;
  /** What is kept between calls. */
  readonly state: CallState;
}

/** Who calls, and until when. */
export interface ExchangeContext {
  readonly caller: KeyCaller;
  readonly requestId: string;
  /** By which repetitions of what nobody waits for are known. Absent: each one counts. */
  readonly idempotencyKey?: string | undefined;
  /** Aborted when the client leaves or the gateway stops. */
  readonly signal: AbortSignal;
}

/** What a run begins with. */
export interface RunStart {
  readonly context: ExchangeContext;
  /** Our id of the call, a UUIDv7. */
  readonly callId: string;
}
