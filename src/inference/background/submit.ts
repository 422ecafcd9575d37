/** Accepts responses in the background: what is wrong with a request is told now, the rest by its task. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ExchangeRequest } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { toAbortSignal } from "../../core/cancel-signal.ts";
import { type JsonRecord, textAt } from "../../dialect/json/value.ts";
import { responseId, pendingResponse } from "../../dialect/responses/response-json.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { newId } from "../../core/uuid.ts";
import type { Transaction } from "../../vendor/task.ts";
import { memberList, replyHeaders } from "../headers.ts";
import { admit, type Admitted } from "../pipeline/admit.ts";
import type { CallContext, PipelineDeps } from "../pipeline/context.ts";
import { toldOf } from "../pipeline/failures.ts";
import { Connection } from "../pipeline/open.ts";
import { quote } from "../pipeline/quote.ts";
import { read } from "../pipeline/read.ts";
import { explainFailure, settle } from "../pipeline/settle.ts";
import type { SentReply, Sink } from "../../core/sink.ts";
import type { CallState } from "../state/responses-memory.ts";
import { WireAdapter } from "../wire-adapter.ts";
import { begunEvents, follow, requireStreamed, type EventLog } from "./event-log.ts";
import { backgroundParams, readBackground } from "./request.ts";
import type { BackgroundState, BackgroundStore } from "./store.ts";
import type { BackgroundStarted, BackgroundTasks } from "./tasks.ts";

/** What {@link createBackground} needs. */
export interface BackgroundOptions extends PipelineDeps {
  /** What is kept between calls. */
  readonly state: CallState;
  readonly tasks: BackgroundTasks;
  readonly store: BackgroundStore;
  readonly background: BackgroundState;
  readonly events: EventLog;
}

/** Accepts a request, and answers with the response as it stands. */
export type Background = (
  request: ExchangeRequest,
  context: CallContext,
  sink: Sink<Buffer>,
) => Promise<SentReply>;

/** Creates it. */
export function createBackground(options: BackgroundOptions): Background {
  const { state } = options;
  return async function background(request, context, sink) {
    const callId = newId();
    const { accountId } = context.caller;
    const adapter = new WireAdapter({ request, callId, accountId, state });
    const admitted = admit(adapter, { callId, context, deps: options });
    const answering = { context, options, sink };
    try {
      const accepted = await accept(request, admitted, options).catch(async (error: unknown) => {
        throw await refused(error, admitted);
      });
      await (admitted.call.stream ? stream : whole)(accepted, answering);
      return {};
    } finally {
      options.calls.leave();
    }
  };
}

interface Answering {
  readonly context: CallContext;
  readonly options: BackgroundOptions;
  readonly sink: Sink<Buffer>;
}

async function whole(
  accepted: Accepted,
  { context: { caller }, options, sink }: Answering,
): Promise<void> {
  const body = accepted.replayed
    ? await options.background.standing(caller.accountId, idOf(accepted.taskId))
    : Buffer.from(JSON.stringify(accepted.begun));
  const headers = { "content-type": "application/json", ...replyHeaders({}, body.length) };
  sink.whole({ status: 200, headers: { ...headers, ...headersOf(accepted) } }, body);
}

/** The client may disconnect: what was accepted is made all the same, and can be read on from any place. */
async function stream(
  accepted: Accepted,
  { context: { caller, signal }, options, sink }: Answering,
): Promise<void> {
  const { taskId } = accepted;
  const of = { accountId: caller.accountId, responseId: idOf(taskId), taskId };
  if (accepted.replayed) await requireStreamed(of, options.events);
  sink.head({ status: 200, headers: { ...streamHeaders, ...headersOf(accepted) } });
  const following = { ...of, after: -1, signal: toAbortSignal(signal) };
  for await (const events of follow(following, options)) await sink.chunk(events);
}

/** How a stream of events begins. */
export const streamHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  ...replyHeaders({}, undefined),
};

function headersOf({ dropped, replayed }: Accepted): Record<string, string> {
  return {
    ...(dropped.length > 0 && { "x-uas-dropped": memberList(dropped) }),
    ...(replayed && { "idempotent-replayed": "true" }),
  };
}

interface Accepted extends BackgroundStarted {
  readonly dropped: readonly string[];
  /** The response, where it was not accepted before. */
  readonly begun: JsonRecord;
}

/** A response's id is made of its call's. */
function idOf(callId: string): string {
  return responseId(callId.replaceAll("-", ""));
}

async function accept(
  request: ExchangeRequest,
  admitted: Admitted<Buffer>,
  options: BackgroundOptions,
): Promise<Accepted> {
  const { call, context } = admitted;
  const { id: callId, accountId, requestId } = call;
  const { exchange, record, isStreamed } = readBackground(request);
  const { state } = options;
  const adapter = new WireAdapter({ request: exchange, callId, accountId, state });
  const quoted = await quote(read({ ...admitted, adapter }));
  const { model, first, tokens } = quoted;
  const { text } = quoted.request;
  call.stream = isStreamed;
  const { dropped = [] } = first ?? {};
  const id = idOf(callId);
  const { path } = request;
  const created = Math.floor(call.startMs / 1000);
  const begun = pendingResponse(record, { id, model: model.key, created });
  const of = { accountId, responseId: id, taskId: callId };
  const { caller, idempotencyKey } = context;
  const starting = {
    ...{ id: callId, caller, requestId, model, idempotencyKey, asked: record as JsonObject },
    params: backgroundParams({ accountId, responseId: id, callId, path, isStreamed }),
    async within(transaction: Transaction) {
      const previousResponseId = textAt(record, "previous_response_id") || undefined;
      const input = record["input"];
      const row = { ...of, model: model.key, previousResponseId, begun, input, request: exchange };
      await options.store.begin(transaction, row);
      if (isStreamed) await options.events.writeIn(transaction, of, begunEvents(begun));
    },
  };
  const outputTokens = text.maxOutputTokens ?? model.maxOutputTokens;
  const start = (inputTokens: number): Promise<BackgroundStarted> =>
    options.tasks.start({ ...starting, units: { inputTokens, outputTokens } });
  const started = await start(tokens.bound).catch(async (error: unknown) => {
    // As for calls: where the balance does not cover the bound, the tokens are counted.
    if (!isInsufficient(error)) throw error;
    const counted = await tokens.countedBound();
    if (counted === undefined || counted >= tokens.bound) throw error;
    return start(counted);
  });
  const told = { requestId, callId: started.taskId, accountId, model: model.key };
  options.log.info({ ...told, replayed: started.replayed }, "a response is made in the background");
  return { ...started, dropped, begun };
}

function isInsufficient(error: unknown): boolean {
  return error instanceof GatewayError && error.code === ErrorCode.INSUFFICIENT_BALANCE;
}

/** What is refused has no task: the record is made here, as for calls (R-MON-10). */
async function refused(error: unknown, admitted: Admitted<Buffer>): Promise<GatewayError> {
  const { call, context, deps } = admitted;
  const told = toldOf(error, context.signal);
  const connection = new Connection(admitted);
  connection.client.endFailed(told, false);
  explainFailure(call, told, deps.log);
  await settle(admitted, {
    connection,
    delivery: { isDone: false, isWithheld: false, isCostTold: false, monitor: undefined },
  });
  return told;
}
