/** Generates background responses, as a runner of their tasks. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { eventBytesMax } from "../../core/limits.ts";
import { withoutServiceTiers } from "../../config/tier-prices.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode } from "../../core/errors.ts";
import { memberOf, withoutSpace } from "../../wire/json/source.ts";
import { textAt, parseRecord, recordAt, type JsonRecord } from "../../wire/json/value.ts";
import { failureOf } from "../../dialect/responses/errors.ts";
import { finishedResponse, withStatus } from "../../dialect/responses/response-json.ts";
import { EventSplitter } from "../../wire/sse/event-stream.ts";
import {
  TaskRefused,
  type TaskOutcome,
  type Transaction,
  type WriteRows,
} from "../../provider/task.ts";
import type { ReadRequest } from "../../calls/pipeline/adapter.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import { contextBytes, type CallState } from "../stored/responses-memory.ts";
import {
  exchangeText,
  openFailure,
  textUsage,
  type GeneratedText,
} from "../../calls/adapters/text-exchange.ts";
import {
  plannedRoute,
  type TextTaskRequest,
  type TextRunner,
} from "../../calls/adapters/text-task.ts";
import type { Upstream } from "../../routing/upstream.ts";
import { WireAdapter } from "../../calls/adapters/wire-adapter.ts";
import {
  initialEvents,
  eventText,
  responseEvent,
  type EventLog,
  type EventBatch,
  type LoggedResponse,
} from "./event-log.ts";
import { backgroundOf, type BackgroundParams } from "./request.ts";
import type { BackgroundStore, FinishedBackground, FoundBackground } from "./store.ts";

/** Options of {@link createBackgroundRunner}. */
interface BackgroundRunnerOptions {
  readonly upstream: Upstream;
  readonly store: BackgroundStore;
  /** The state that outlives a call. */
  readonly state: CallState;
  /** Stores the events of streamed responses. */
  readonly log: EventLog;
  readonly warn: (message: string, fields: object) => void;
  readonly clock: Clock;
}

/** Creates a runner of tasks that generate background responses. */
export function createBackgroundRunner(options: BackgroundRunnerOptions): TextRunner {
  const { upstream, clock, store, state } = options;
  return async (task) => {
    const params = backgroundOf(task.params);
    if (params === undefined) throw new Error("the task generates no background response");
    const { accountId, responseId, callId } = params;
    const found = await store.find(accountId, responseId);
    if (found === undefined) throw new TaskRefused("invalid_request", "The response was deleted");
    const adapter = new WireAdapter({ request: found.request, callId, accountId, state, clock });
    const { request, planned } = await planOf(upstream, adapter, task);
    const recorder = await recorderOf(params, options);
    recorder?.begin(found.pending);
    const events = new ResponseEvents((type, json) => recorder?.add(type, json));
    const { model, signal, lastSignal } = task;
    const take = (bytes: Buffer): void => events.add(bytes);
    const exchange = {
      request,
      model: withoutServiceTiers(model),
      planned,
      signal,
      lastSignal,
      take,
    };
    try {
      const generated = await exchangeText(upstream, exchange);
      const { isRewritten } = request;
      const done = outcomeOf({
        params,
        found,
        planned,
        isRewritten,
        events,
        generated,
        store,
        recorder,
      });
      const vendorTaskId = generated.upstreamId || events.id;
      return { ...(vendorTaskId !== "" && { vendorTaskId }), done };
    } catch (error) {
      throw asResponseFailure(error);
    } finally {
      await recorder?.close();
    }
  };
}

/** Returns the failure in the terms of responses. Invalid requests are reported as for calls. */
function asResponseFailure(error: unknown): unknown {
  if (!(error instanceof TaskRefused) || error.code !== "invalid_parameters") return error;
  const { message, isTemporary, fault, retryAfterSeconds, canRetryElsewhere } = error;
  const about = { fault, retryAfterSeconds, canRetryElsewhere };
  return new TaskRefused("invalid_request", message, isTemporary, about);
}

/** Creates the recorder of a streamed response; undefined if the response is not streamed. */
async function recorderOf(
  { isStreamed, accountId, responseId, callId: taskId }: BackgroundParams,
  { log, warn }: Pick<BackgroundRunnerOptions, "log" | "warn">,
): Promise<Recorder | undefined> {
  if (!isStreamed) return undefined;
  const of = { accountId, responseId, taskId };
  return new Recorder({ log, of, warn }, await log.last(of));
}

interface Plan {
  readonly request: ReadRequest<Buffer>;
  readonly planned: PlannedRoute;
}

/** Reads the stored request, and checks that this route can serve it. @throws TaskRefused */
async function planOf(
  upstream: Upstream,
  adapter: WireAdapter,
  task: TextTaskRequest,
): Promise<Plan> {
  const { model, route } = task;
  const planned = plannedRoute(upstream, { model, route, dialect: Dialect.RESPONSES });
  try {
    const request = adapter.read();
    const recalled = await request.recall(upstream.plan(model, Dialect.RESPONSES));
    if (recalled === undefined) return { request, planned };
    const isAble = recalled.routes.some((each) => each.route === route);
    if (isAble) return { request: recalled.request, planned };
  } catch (error) {
    throw asResponseFailure(openFailure(error));
  }
  // Another of the model's vendors has stored the conversation.
  throw new TaskRefused("upstream_error", `vendor ${route.vendor} cannot continue it`, true);
}

interface OutcomeInput {
  readonly params: BackgroundParams;
  readonly found: FoundBackground;
  readonly planned: PlannedRoute;
  /** See {@link ReadRequest.isRewritten}. */
  readonly isRewritten: boolean;
  readonly events: ResponseEvents;
  readonly generated: GeneratedText;
  readonly store: BackgroundStore;
  readonly recorder: Recorder | undefined;
}

function outcomeOf({
  params,
  found,
  planned,
  isRewritten,
  events,
  generated,
  store,
  recorder,
}: OutcomeInput): TaskOutcome {
  const ended = events.ended();
  const { accountId, responseId } = params;
  const { vendor } = planned.route;
  const isStoredByVendor =
    planned.dialect === Dialect.RESPONSES && !isRewritten && events.id !== "";
  const bytes = contextBytes(parseRecord(ended) ?? {});
  const vendorCopy = isStoredByVendor ? { vendor, responseId: events.id, bytes } : undefined;
  const { usage, implausible } = generated.metered;
  const response = finishedResponse(found.pending, ended, implausible && usage);
  const finished = { accountId, responseId, response, input: found.input, vendorCopy };
  return {
    files: [],
    ...textUsage(generated.metered),
    dropped: generated.dropped,
    inSameTransaction: writeRows(finished, { store, recorder }),
  };
}

function writeRows(
  finished: FinishedBackground,
  { store, recorder }: Pick<OutcomeInput, "store" | "recorder">,
): WriteRows {
  return async (transaction) => {
    await store.finish(transaction, finished);
    await recorder?.finish(transaction, finished.response);
  };
}

/** Time for which events are batched, because each write is a commit and wakes readers. */
const batchDelayMs = 100;

/**
 * The vendor's events that the gateway writes itself: the response began before its vendor's
 * stream, and its last event is written with the stored response.
 */
const replacedEvents = new Set([
  "response.created",
  "response.queued",
  "response.in_progress",
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
]);

/** Options of {@link Recorder}. */
interface RecorderOptions {
  readonly log: EventLog;
  readonly of: LoggedResponse & { readonly taskId: string };
  /** Called if events could not be written; they are written again with the next ones. */
  readonly warn: (message: string, fields: object) => void;
}

/** Numbers the events of a response and writes them in batches. {@link close} it. */
export class Recorder {
  readonly #options: RecorderOptions;
  #next: number;
  /** The events that are not written yet. */
  #pending: string[] = [];
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  /** @param last the number of the last written event */
  constructor(options: RecorderOptions, last: number) {
    this.#options = options;
    this.#next = last + 1;
  }

  /**
   * Records the start of the generation, once for all attempts. @param pending the response as JSON
   */
  begin(pending: string): void {
    if (this.#next > initialEvents(pending).last + 1) return;
    const response = withStatus(pending, { status: "in_progress" });
    this.#add("response.in_progress", `{"response":${response}}`);
  }

  /** Records an event of the vendor. @param json the event */
  add(type: string, json: string): void {
    if (type !== "" && !replacedEvents.has(type)) this.#add(type, json);
  }

  /**
   * Writes pending events and the last one, in the transaction that ends the response. May be
   * repeated.
   */
  async finish(transaction: Transaction, response: string): Promise<void> {
    await this.#written();
    const type = `response.${textAt(parseRecord(response) ?? {}, "status")}`;
    const events = [...this.#pending, responseEvent(this.#next, type, response)];
    const { log, of } = this.#options;
    await log.writeIn(transaction, of, { last: this.#next, events });
  }

  /** Writes pending events. Never rejects. */
  async close(): Promise<void> {
    await this.#written();
    await this.#write();
  }

  #add(type: string, json: string): void {
    this.#pending.push(eventText(this.#next++, type, json));
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#writing.then(() => this.#write());
    }, batchDelayMs).unref();
  }

  async #written(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#writing;
  }

  async #write(): Promise<void> {
    const events = this.#pending;
    if (events.length === 0) return;
    const batch: EventBatch = { last: this.#next - 1, events: [...events] };
    const { log, of, warn } = this.#options;
    try {
      await log.write(of, batch);
      this.#pending = this.#pending.slice(batch.events.length);
    } catch (error) {
      warn("events of a response could not be written", { responseId: of.responseId, err: error });
    }
  }
}

const endings = new Set(["response.completed", "response.incomplete"]);
const failures = new Set(["response.failed", "error"]);

/** Splits a reply into events, and keeps the final response. */
class ResponseEvents {
  readonly #splitter = new EventSplitter(eventBytesMax);
  readonly #onEvent: (type: string, json: string) => void;
  #ended: string | undefined;

  /** @param onEvent called with each event, in order */
  constructor(onEvent: (type: string, json: string) => void) {
    this.#onEvent = onEvent;
  }

  /** Adds complete events, or a complete response. @throws TaskRefused if the vendor failed */
  add(bytes: Buffer): void {
    // Some vendors ignore `stream` and send a complete response.
    if (bytes[0] === 0x7b) return this.#end(bytes.toString("utf8"));
    const source = this.#splitter.begin([bytes]);
    let offset = 0;
    for (let event = this.#splitter.next(offset); event; event = this.#splitter.next(offset)) {
      offset = event.end;
      this.#event(source.toString("utf8", event.dataStart, event.dataEnd));
    }
    this.#splitter.finish(offset, bytes);
  }

  /** The vendor's id of the response; empty if it sent none, or the response has not ended. */
  get id(): string {
    return textAt(parseRecord(this.#ended ?? "") ?? {}, "id");
  }

  /** Returns the final response as JSON. @throws TaskRefused if there is none */
  ended(): string {
    if (this.#ended !== undefined) return this.#ended;
    throw new TaskRefused("upstream_error", "The model's vendor sent an invalid reply; try again");
  }

  #event(json: string): void {
    const event = parseRecord(json) ?? {};
    const type = textAt(event, "type");
    const response = recordAt(event, "response");
    if (endings.has(type) && response !== undefined) this.#ended = memberOf(json, "response");
    if (failures.has(type)) throw failed(response ?? event);
    this.#onEvent(type, json);
  }

  #end(json: string): void {
    const response = parseRecord(json) ?? {};
    if (textAt(response, "status") === "failed") throw failed(response);
    this.#ended = withoutSpace(json);
  }
}

function failed(record: JsonRecord): TaskRefused {
  const { code, message } = failureOf(record);
  const isCallers = code === ErrorCode.INVALID_REQUEST;
  return new TaskRefused(isCallers ? "invalid_request" : "upstream_error", message);
}
