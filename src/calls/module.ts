/** Connects the parts of the room of calls: the pipeline, the handlers and the services. */
import { join } from "node:path";
import type { Pool } from "pg";
import type { Logger } from "pino";
import { InferenceService } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { MediaService } from "../../gen/uas/inference/v1/media_service_pb.ts";
import type { LedgerWriter } from "../billing/ledger/ledger-writer.ts";
import { priceListOf } from "../billing/prices/price-rpcs.ts";
import type { Pricing } from "../billing/prices/pricing.ts";
import type { Config, Settings, ModelConfig } from "../config/config.ts";
import type { OnRefusedKey } from "../core/caller.ts";
import type { Clock } from "../core/clock.ts";
import type { PeriodicJobs } from "../core/periodic.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Traces } from "../observe/traces/traces.ts";
import { serve, type Service } from "../core/contract-rules.ts";
import type { Database } from "../db/database.ts";
import { Admission } from "./admission.ts";
import { createCatalogue } from "./catalogue.ts";
import { createCountTokens } from "./adapters/count-tokens.ts";
import { type BackgroundResponses, createHandlers, type InferenceHandlers } from "./handlers.ts";
import { createClaims } from "./idempotency/claims.ts";
import { AdmissionQueues } from "../limits/admission-queue.ts";
import type { Limiter } from "../limits/limiter.ts";
import { createMediaHandler } from "./adapters/media/handler.ts";
import type { MediaTasks } from "./adapters/media/media-tasks.ts";
import type { DetachedReplies } from "./pipeline/disconnect.ts";
import { MonitoredStreams } from "./pipeline/hold-monitor.ts";
import { Refusals } from "./pipeline/refusals.ts";
import { createRefusedKeys } from "./refused-keys.ts";
import type { RunningCalls } from "./running-calls.ts";
import { createInferenceService, createMediaService } from "./service.ts";
import type { CallState } from "../responses/stored/responses-memory.ts";
import type { PipelineDeps } from "./pipeline/context.ts";
import type { TokenCounter } from "../tokens/counter.ts";
import { createUnlimitedRoutes } from "./unlimited-routes.ts";
import type { Upstream } from "../routing/upstream.ts";
import { createEndpointsOf } from "./endpoints.ts";

/** Options of {@link createPipeline}. */
interface PipelineOptions {
  readonly clock: Clock;
  readonly config: Config;
  readonly ledger: LedgerWriter;
  readonly pricing: Pricing;
  readonly calls: RunningCalls;
  readonly limiter: Limiter;
  readonly detached: DetachedReplies;
  readonly metrics: Metrics;
  /** Undefined if no collector is named. */
  readonly traces: Traces | undefined;
  readonly log: Logger;
  readonly counter: TokenCounter;
  /** Counts for callers who pay nothing for it. */
  readonly freeCounter: TokenCounter;
  readonly upstream: Upstream;
  readonly database: Pick<Database, "pool" | "taskPool" | "jobPool" | "url">;
  /** The master key, 32 bytes. */
  readonly masterKey: Uint8Array;
}

/** The pipeline that all calls of a process share, and its periodic jobs. */
interface Pipeline {
  readonly deps: PipelineDeps;
  readonly jobs: readonly PeriodicJobs[];
  /** To be stopped when all calls have ended. */
  readonly refusals: Refusals;
}

/** Creates what calls share. */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { clock, config, ledger, pricing, calls, limiter, detached, metrics, log } = options;
  const { counter, freeCounter, upstream } = options;
  const { pool, taskPool, jobPool, url } = options.database;
  const warn = (message: string, fields: object): void => log.warn(fields, message);
  const { masterKey } = options;
  const { nodeId } = ledger;
  const claims = createClaims({ pool: taskPool, jobPool, masterKey, nodeId, warn });
  const unlimitedRoutes = createUnlimitedRoutes({ pool, url, metrics, log });
  const catalogue = createCatalogue(config);
  const refusals = new Refusals({ ledger, log, metrics });
  const deps: PipelineDeps = {
    clock,
    admission: new Admission({ catalogue, calls }),
    catalogue,
    ledger,
    refusals,
    pricing,
    upstream,
    calls,
    limiter,
    config,
    limitQueues: new AdmissionQueues(limiter),
    streams: new MonitoredStreams(),
    unlimitedRoutes,
    detached,
    claims,
    metrics,
    traces: options.traces,
    log,
    counter,
    freeCounter,
  };
  return { deps, jobs: [unlimitedRoutes, claims.jobs], refusals };
}

/** Options of {@link createInference}. */
interface InferenceRoomOptions {
  readonly pipeline: PipelineDeps;
  readonly state: CallState;
  /** `dataDir`: temporary files are in a folder of it. */
  readonly settings: Pick<Settings, "dataDir">;
  readonly background: BackgroundResponses;
  readonly pool: Pool;
  /** Runs requests for images and speech as tasks. */
  readonly media: MediaTasks;
}

/** The room of calls of a server. */
interface InferenceRoom {
  readonly services: readonly Service[];
  readonly handlers: InferenceHandlers;
  /** Records calls with keys that are disabled, deleted or expired. */
  readonly onRefusedKey: OnRefusedKey;
}

/** Creates the services and handlers of calls. */
export function createInference(options: InferenceRoomOptions): InferenceRoom {
  const { pipeline, state, settings, background, media } = options;
  const { admission, catalogue, upstream, clock, pricing } = pipeline;
  const handlers = createHandlers(
    { ...pipeline, state },
    {
      background,
      media: createMediaHandler({
        ...pipeline,
        tasks: media,
        uploadFolder: join(settings.dataDir, "uploads"),
      }),
    },
  );
  const countTokens = createCountTokens({
    admission,
    upstream,
    calls: pipeline.calls,
    clock,
    counter: pipeline.freeCounter,
  });
  const modelFacts = {
    endpointsOf: createEndpointsOf(upstream, media),
    offeredSince: (model: ModelConfig) => pricing.offeredSince(model),
    clock,
  };
  return {
    services: [
      serve(
        InferenceService,
        createInferenceService({
          admission,
          catalogue,
          handlers,
          countTokens,
          modelFacts,
          priceListOf: (caller) => priceListOf(options.pool, caller),
        }),
      ),
      serve(MediaService, createMediaService(handlers)),
    ],
    handlers,
    onRefusedKey: createRefusedKeys(pipeline),
  };
}
