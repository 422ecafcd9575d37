/** Makes responses in the background, for whoever runs their tasks. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { finishedResponse } from "../../dialect/responses/standing-response.ts";
import { TaskRefused, type TaskOutcome } from "../../vendor/task.ts";
import type { PlannedRoute, ReadRequest } from "../pipeline/adapter.ts";
import { exchangeText, type MadeText } from "../text-exchange.ts";
import { unopenedText } from "../text-failure.ts";
import { textUsage } from "../text-reply.ts";
import { plannedRoute, type TextAsk, type TextRunner } from "../text-task.ts";
import type { Upstream } from "../upstream.ts";
import { contextBytes } from "../state/responses-memory.ts";
import type { CallState } from "../state/call-state.ts";
import { WireAdapter } from "../wire-adapter.ts";
import type { EventLog } from "./event-log.ts";
import { ResponseEvents } from "./events.ts";
import { type BackgroundParams, backgroundOf } from "./params.ts";
import { Recorder } from "./recorder.ts";
import type { BackgroundStore, FoundBackground } from "./store.ts";

/** What {@link createBackgroundRunner} needs. */
export interface BackgroundRunnerOptions {
  readonly upstream: Upstream;
  readonly store: BackgroundStore;
  /** What is kept between calls. */
  readonly state: CallState;
  /** Keeps the events of responses that are read as streams. */
  readonly log: EventLog;
  readonly warn: (message: string, fields: object) => void;
}

/** Makes a runner of tasks whose parameters are of a response in the background. */
export function createBackgroundRunner(options: BackgroundRunnerOptions): TextRunner {
  const { upstream, store, state } = options;
  return async (ask) => {
    const params = backgroundOf(ask.params);
    if (params === undefined) throw new Error("no response in the background");
    const { accountId, responseId, callId } = params;
    const found = await store.find(accountId, responseId);
    if (found === undefined) throw new TaskRefused("invalid_parameters", "It was deleted");
    const adapter = new WireAdapter({ request: found.request, callId, accountId, state });
    const { request, planned } = await planOf(upstream, adapter, ask);
    const recorder = await recorderOf(params, options);
    recorder?.begin(found.begun);
    const events = new ResponseEvents((event) => recorder?.add(event));
    const { model, signal } = ask;
    const take = (bytes: Buffer): void => events.add(bytes);
    try {
      const made = await exchangeText(upstream, { request, model, planned, signal, take });
      const done = outcomeOf({ params, found, planned, events, made, store, recorder });
      const vendorTaskId = made.upstreamId || events.id;
      return { ...(vendorTaskId !== "" && { vendorTaskId }), done };
    } finally {
      await recorder?.close();
    }
  };
}

/** `undefined`: nobody reads the response as a stream. */
async function recorderOf(
  { isStreamed, accountId, responseId, callId: taskId }: BackgroundParams,
  { log, warn }: BackgroundRunnerOptions,
): Promise<Recorder | undefined> {
  if (!isStreamed) return undefined;
  const of = { accountId, responseId, taskId };
  return new Recorder({ log, of, warn }, await log.last(of));
}

interface Plan {
  readonly request: ReadRequest<Buffer>;
  readonly planned: PlannedRoute;
}

/** Reads the request again, and finds whether this route can serve it. @throws TaskRefused */
async function planOf(upstream: Upstream, adapter: WireAdapter, ask: TextAsk): Promise<Plan> {
  const { model, route } = ask;
  const planned = plannedRoute(upstream, { model, route, dialect: Dialect.RESPONSES });
  try {
    const request = adapter.read();
    const recalled = await request.recall(upstream.plan(model, Dialect.RESPONSES));
    if (recalled === undefined) return { request, planned };
    const isAble = recalled.routes.some((each) => each.route === route);
    if (isAble) return { request: recalled.request, planned };
  } catch (error) {
    throw unopenedText(error);
  }
  // What it goes on from is kept by another of the model's vendors.
  throw new TaskRefused("upstream_error", `vendor ${route.vendor} cannot continue it`, true);
}

interface Made {
  readonly params: BackgroundParams;
  readonly found: FoundBackground;
  readonly planned: PlannedRoute;
  readonly events: ResponseEvents;
  readonly made: MadeText;
  readonly store: BackgroundStore;
  readonly recorder: Recorder | undefined;
}

function outcomeOf({ params, found, planned, events, made, store, recorder }: Made): TaskOutcome {
  const ended = events.ended();
  const { accountId, responseId } = params;
  const { vendor } = planned.route;
  const isKept = planned.dialect === Dialect.RESPONSES && events.id !== "";
  const bytes = contextBytes(ended);
  const keeper = isKept ? { vendor, responseId: events.id, bytes } : undefined;
  const response = finishedResponse(found.begun, ended);
  const finished = { accountId, responseId, response, input: found.input, keeper };
  return {
    files: [],
    ...textUsage(made.metered),
    dropped: made.dropped,
    async within(transaction) {
      await store.finish(transaction, finished);
      await recorder?.finish(transaction, response);
    },
  };
}
