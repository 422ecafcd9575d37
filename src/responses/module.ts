/**
 * Builds the responses room: stored responses, and responses that are generated in the background.
 */
import { ResponseService } from "../../gen/uas/inference/v1/response_service_pb.ts";
import { serve, type Service } from "../core/contract-rules.ts";
import type { EventLog } from "./background/event-log.ts";
import { asksForBackground } from "./background/request.ts";
import { createBackgroundState, type BackgroundStore } from "./background/store.ts";
import { createBackground } from "./background/submit.ts";
import type { BackgroundTasks } from "./background/tasks.ts";
import type { BackgroundResponses } from "../calls/handlers.ts";
import type { PipelineDeps } from "../calls/pipeline/context.ts";
import { createResponseService } from "./response-service.ts";
import type { StoredState } from "./stored/state.ts";

/** Options of {@link createResponses}. */
interface ResponsesOptions {
  readonly pipeline: PipelineDeps;
  readonly state: StoredState;
  /** Background responses until they are complete. */
  readonly store: BackgroundStore;
  /** The events of streamed background responses. */
  readonly events: EventLog;
  /** Runs background responses as tasks. */
  readonly tasks: BackgroundTasks;
}

/** The responses room of a server. */
interface ResponsesRoom {
  readonly service: Service;
  /** Accepts requests for background responses. */
  readonly background: BackgroundResponses;
}

/** Creates the room. */
export function createResponses(options: ResponsesOptions): ResponsesRoom {
  const { pipeline, state, store, events, tasks } = options;
  const background = createBackgroundState(tasks, state.responses);
  const followOptions = { tasks, background, events };
  return {
    service: serve(
      ResponseService,
      createResponseService({
        store: state.responses,
        vendorState: state.vendorState,
        followOptions,
      }),
    ),
    background: {
      isRequested: asksForBackground,
      accept: createBackground({ ...pipeline, ...followOptions, state, store }),
    },
  };
}
