/**
 * The context of every phase of a call: the caller, and the parts of the gateway that calls share.
 */
import type { Logger } from "pino";
import type { Ledger } from "../../billing/ledger/ledger.ts";
import type { Pricing } from "../../billing/prices/pricing.ts";
import type { KeyCaller } from "../../core/caller.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import type { Clock } from "../../core/clock.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { Traces } from "../../observe/traces/traces.ts";
import type { Admission } from "../admission.ts";
import type { Claims } from "../idempotency/claims.ts";
import type { Catalogue } from "../catalogue.ts";
import type { Config } from "../../config/config.ts";
import type { AdmissionQueues } from "../../limits/admission-queue.ts";
import type { Limiter } from "../../limits/limiter.ts";
import type { RunningCalls } from "../running-calls.ts";
import type { TokenCounter } from "../../tokens/counter.ts";
import type { UnlimitedRoutes } from "../unlimited-routes.ts";
import type { Upstream } from "../../routing/upstream.ts";
import type { DetachedReplies } from "./disconnect.ts";
import type { MonitoredStreams } from "./hold-monitor.ts";
import type { Refusals } from "./refusals.ts";

/** The caller of one call, and the signal that ends it. */
export interface CallContext {
  readonly caller: KeyCaller;
  readonly requestId: string;
  /**
   * Requests with the same key and body are charged once and get the same reply. Absent: each
   * request is a new call.
   */
  readonly idempotencyKey?: string | undefined;
  /** The client's `traceparent` header. Default: the call begins a trace. */
  readonly traceparent?: string | undefined;
  /** Cancelled when the client disconnects or the gateway stops. */
  readonly signal: CancelSignal;
}

/** The parts of a process that all calls share. */
export interface PipelineDeps {
  readonly clock: Clock;
  readonly admission: Admission;
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  readonly refusals: Pick<Refusals, "passes">;
  readonly pricing: Pricing;
  readonly upstream: Upstream;
  readonly calls: RunningCalls;
  readonly limiter: Pick<Limiter, "admit" | "isFar" | "end">;
  /** In force; its limits are read for each call. */
  readonly config: Pick<Config, "limits">;
  /** Queues in which calls wait for a free slot of their limits. */
  readonly limitQueues: Pick<AdmissionQueues, "admit" | "onEnd">;
  readonly streams: MonitoredStreams;
  readonly unlimitedRoutes: Pick<UnlimitedRoutes, "has" | "add" | "kept">;
  readonly detached: DetachedReplies;
  /** The idempotency keys of calls. */
  readonly claims: Claims;
  readonly metrics: Metrics;
  /** Undefined if no collector is named. */
  readonly traces: Traces | undefined;
  readonly log: Logger;
  readonly counter: TokenCounter;
  /**
   * Counts tokens for callers who may pay nothing; {@link counter} never waits for it (R-LIM-2).
   */
  readonly freeCounter: TokenCounter;
}
