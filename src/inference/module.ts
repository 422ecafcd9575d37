/** Builds the inference room. */
import { join } from "node:path";
import type { Logger } from "pino";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import { InferenceService } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { MediaService } from "../../gen/uas/inference/v1/media_service_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import { ResponseService } from "../../gen/uas/inference/v1/response_service_pb.ts";
import type { LedgerWriter } from "../billing/ledger/ledger-writer.ts";
import type { Pricing } from "../billing/prices/pricing.ts";
import type { Config, Settings, ModelConfig } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Metrics } from "../core/metrics.ts";
import { serve } from "../core/service.ts";
import type { Database } from "../db/database.ts";
import type { OperationName, Vendor } from "../vendor/vendor.ts";
import { createBackgroundState } from "./background/store.ts";
import { createBackground } from "./background/submit.ts";
import type { BackgroundTasks } from "./background/tasks.ts";
import { createCatalogue, type EndpointsOf } from "./catalogue.ts";
import { createCountTokens } from "./count-tokens.ts";
import { createHandlers } from "./handlers.ts";
import { AdmissionQueues } from "./limits/admission-queue.ts";
import type { Limiter } from "./limits/limiter.ts";
import { createMediaHandler } from "./media/handler.ts";
import { takesImages, takesText } from "./media/media-params.ts";
import type { MediaTasks } from "./media/media-tasks.ts";
import type { DetachedReplies } from "./pipeline/disconnect.ts";
import { MonitoredStreams } from "./pipeline/hold-monitor.ts";
import { createRefusedKeys } from "./refused-keys.ts";
import type { RunningCalls } from "./running-calls.ts";
import { createInferenceService, createMediaService } from "./service.ts";
import { createResponseService } from "./state/response-service.ts";
import type { InferenceState } from "./state/state.ts";
import type { TokenCounter } from "./tokens/counter.ts";
import { createUnlimitedRoutes } from "./unlimited-routes.ts";
import type { Upstream } from "./routing/upstream.ts";

/** Options of {@link createInference}. */
interface InferenceRoomOptions {
  readonly clock: Clock;
  readonly config: Config;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly ledger: LedgerWriter;
  readonly pricing: Pricing;
  readonly calls: RunningCalls;
  readonly limiter: Limiter;
  readonly detached: DetachedReplies;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly state: InferenceState;
  readonly counter: TokenCounter;
  /** Counts for callers who pay nothing for it. */
  readonly freeCounter: TokenCounter;
  readonly upstream: Upstream;
  readonly database: Pick<Database, "pool" | "url">;
  /** `dataDir`: temporary files are in a folder of it. */
  readonly settings: Pick<Settings, "dataDir">;
  /** Runs background responses, and requests for images and speech, as tasks. */
  readonly tasks: { readonly background: BackgroundTasks; readonly media: MediaTasks };
}

/** Creates the services, and the parts that other rooms use. */
export function createInference(options: InferenceRoomOptions) {
  const { config, calls, state, freeCounter, upstream } = options;
  const { background: tasks, media } = options.tasks;
  const catalogue = createCatalogue(config.models);
  const { pool, url } = options.database;
  const { metrics, log } = options;
  const unlimitedRoutes = createUnlimitedRoutes({ pool, url, metrics, log });
  const limitDefaults = config.limits;
  const callDeps = {
    ...options,
    limitDefaults,
    admission: new AdmissionQueues(options.limiter),
    catalogue,
    streams: new MonitoredStreams(),
    unlimitedRoutes,
  };
  const background = createBackgroundState(tasks, state.responses);
  const followOptions = { tasks, background, events: state.events };
  const backgroundOptions = { ...callDeps, ...followOptions, store: state.background };
  const handlers = createHandlers(callDeps, {
    background: createBackground(backgroundOptions),
    media: createMediaHandler({
      ...callDeps,
      tasks: media,
      uploadFolder: join(options.settings.dataDir, "uploads"),
    }),
  });
  const countTokens = createCountTokens({
    ...{ catalogue, upstream, calls, clock: options.clock },
    counter: freeCounter,
  });
  const inference = createInferenceService({
    ...{ catalogue, handlers, countTokens },
    modelFacts: {
      endpointsOf: createEndpointsOf(upstream, media),
      offeredSince: (model) => options.pricing.offeredSince(model),
      clock: options.clock,
    },
  });
  const { responses: store, vendorState } = state;
  const responses = createResponseService({ store, vendorState, followOptions });
  const services = [
    serve(InferenceService, inference),
    serve(MediaService, createMediaService(handlers)),
    serve(ResponseService, responses),
  ];
  const refusedKeys = createRefusedKeys(options);
  return { services, catalogue, handlers, refusedKeys, jobs: [unlimitedRoutes] };
}

// The paths that models answer: by their type, and by what the vendors of their routes offer.

const taskPath = "/api/ai/tasks";

/** The paths of each type; with an operation, only where a vendor of the model offers it. */
const paths: ReadonlyMap<
  ModelType,
  readonly (readonly [path: string, operation?: OperationName])[]
> = new Map([
  [ModelType.TEXT, [["/v1/chat/completions"], ["/v1/responses"], ["/v1/messages"], [taskPath]]],
  [
    ModelType.IMAGE,
    [
      ["/v1/images/generations"],
      ["/v1/images/edits", "editImages"],
      ["/v1/images/variations", "varyImages"],
      [taskPath],
    ],
  ],
  [ModelType.VIDEO, [[taskPath]]],
  [
    ModelType.AUDIO,
    [
      ["/v1/audio/speech", "speak"],
      ["/v1/audio/transcriptions", "transcribe"],
      ["/v1/audio/translations", "translate"],
      [taskPath],
    ],
  ],
  [ModelType.EMBEDDING, [["/v1/embeddings"]]],
  [ModelType.RERANK, [["/v1/rerank"], ["/v2/rerank"]]],
  [ModelType.MODERATION, [["/v1/moderations"]]],
]);

/** Creates the lookup. */
function createEndpointsOf(upstream: Pick<Upstream, "plan">, media: MediaTasks): EndpointsOf {
  const offers = (model: ModelConfig, operation: OperationName): boolean =>
    upstream.plan(model, Dialect.CHAT_COMPLETIONS, operation).length > 0 ||
    (operation === "editImages" && takesImages(media.find(model))) ||
    (operation === "speak" && takesText(media.find(model)));
  return (model) => {
    const isText = model.type === ModelType.TEXT;
    if (isText && upstream.plan(model, undefined).every(({ dialect }) => dialect === undefined)) {
      // Its vendors have native APIs only.
      return [];
    }
    return (paths.get(model.type) ?? [])
      .filter(([, operation]) => operation === undefined || offers(model, operation))
      .map(([path]) => path);
  };
}
