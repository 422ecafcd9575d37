/** What a run of a call needs. */
import type { Logger } from "pino";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { Ledger } from "../billing/ledger.ts";
import type { Caller } from "../caller.ts";
import type { ModelConfig } from "../config/config.ts";
import type { Metrics } from "../metrics.ts";
import type { Catalogue } from "./catalogue.ts";
import type { RunningCalls } from "./running-calls.ts";
import type { CallState } from "./wire-door.ts";
import type { Upstream } from "./upstream.ts";

/** Prices, as billing keeps them. */
export interface Pricing {
  /** The version that a charge is made with now. */
  version(model: ModelConfig): string;
  /** What to hold, in nano-USD, rounded up. */
  hold(model: ModelConfig, tokens: { input: number; output: number }): bigint;
  /** What to charge, in nano-USD, rounded down. */
  cost(model: ModelConfig, usage: Usage): bigint;
}

export interface ExchangeOptions {
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  readonly pricing: Pricing;
  readonly upstream: Upstream;
  readonly calls: RunningCalls;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** What is kept between calls. */
  readonly state: CallState;
}

/** Who calls, and until when. */
export interface ExchangeContext {
  readonly caller: Extract<Caller, { kind: "key" }>;
  readonly requestId: string;
  /** Aborted when the client leaves or the gateway stops. */
  readonly signal: AbortSignal;
}

/** What a run begins with. */
export interface RunStart {
  readonly context: ExchangeContext;
  /** Our id of the call, a UUIDv7. */
  readonly callId: string;
}
