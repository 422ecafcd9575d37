/** Puts inference together. */
import type { Logger } from "pino";
import { InferenceService } from "../gen/uas/inference/v1/inference_service_pb.ts";
import { ResponseService } from "../gen/uas/inference/v1/response_service_pb.ts";
import type { LedgerWriter } from "./billing/ledger-writer.ts";
import type { Config } from "./config/config.ts";
import { createBackgroundState } from "./inference/background/standing.ts";
import { createBackground } from "./inference/background/submit.ts";
import type { BackgroundTasks } from "./inference/background/tasks.ts";
import { createCatalogue } from "./inference/catalogue.ts";
import { createCountTokens } from "./inference/count-tokens.ts";
import { createHandlers } from "./inference/handlers.ts";
import type { Pricing } from "./inference/pipeline/context.ts";
import type { DetachedReplies } from "./inference/pipeline/disconnect.ts";
import { MonitoredStreams } from "./inference/pipeline/hold-monitor.ts";
import type { RunningCalls } from "./inference/running-calls.ts";
import { createRefusedKeys } from "./inference/refused-keys.ts";
import { createInferenceService } from "./inference/service.ts";
import { createResponseService } from "./inference/state/response-service.ts";
import type { InferenceState } from "./inference/state/state.ts";
import type { TokenCounter } from "./inference/tokens/counter.ts";
import type { Upstream } from "./inference/upstream.ts";
import type { Metrics } from "./metrics.ts";
import { serve } from "./rpc/service.ts";
import type { Vendor } from "./vendor/vendor.ts";

/** What inference needs of the rest. */
export interface InferenceParts {
  readonly config: Config;
  readonly vendors: ReadonlyMap<string, Vendor>;
  readonly ledger: LedgerWriter;
  readonly pricing: Pricing;
  readonly calls: RunningCalls;
  readonly detached: DetachedReplies;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly state: InferenceState;
  readonly counter: TokenCounter;
  readonly upstream: Upstream;
  /** Runs responses in the background. */
  readonly background: BackgroundTasks;
}

/** Makes the services, and what other rooms need of inference. */
export function createInference(parts: InferenceParts) {
  const { config, calls, state, counter, upstream, background: tasks } = parts;
  const catalogue = createCatalogue(config.models);
  const exchanging = { ...parts, catalogue, streams: new MonitoredStreams() };
  const background = createBackgroundState(tasks, state.responses);
  const following = { tasks, background, events: state.events };
  const accept = { ...exchanging, ...following, store: state.background };
  const handlers = createHandlers(exchanging, createBackground(accept));
  const countTokens = createCountTokens({ catalogue, upstream, calls, counter });
  const inference = createInferenceService({ catalogue, handlers, countTokens });
  const { responses: store, vendorState } = state;
  const responses = createResponseService({ store, vendorState, following });
  const services = [serve(InferenceService, inference), serve(ResponseService, responses)];
  return { services, catalogue, handlers, refusedKeys: createRefusedKeys(parts) };
}
