/** Accepts responses in the background: what is wrong with a request is told now, the rest by its task. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { type JsonRecord, textAt } from "../../dialect/json.ts";
import { responseId } from "../../dialect/responses/response-json.ts";
import { begunResponse } from "../../dialect/responses/standing-response.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";
import { newId } from "../../uuid.ts";
import { Call, callStart } from "../call.ts";
import { endFailed, toldOf } from "../failures.ts";
import { memberList, replyHeaders } from "../headers.ts";
import { readCall } from "../read-call.ts";
import { explainFailure, reportCall } from "../report.ts";
import type { ExchangeContext, ExchangeOptions } from "../run-options.ts";
import { RequestTokens } from "../tokens/request-tokens.ts";
import { WireDoor } from "../wire-door.ts";
import type { Transaction } from "../../vendor/task.ts";
import { begunEvents, type EventLog } from "./event-log.ts";
import { follow, requireStreamed } from "./follow.ts";
import { backgroundParams } from "./params.ts";
import { readBackground } from "./request.ts";
import type { BackgroundState } from "./standing.ts";
import type { BackgroundStore } from "./store.ts";
import type { BackgroundStarted, BackgroundTasks } from "./tasks.ts";

/** What {@link createBackground} needs. */
export interface BackgroundOptions extends ExchangeOptions {
  readonly tasks: BackgroundTasks;
  readonly store: BackgroundStore;
  readonly background: BackgroundState;
  readonly events: EventLog;
}

/** Accepts a request, and answers with the response as it stands. */
export type Background = (
  request: ExchangeRequest,
  context: ExchangeContext,
) => AsyncIterableIterator<ExchangeResponse>;

/** Makes it. */
export function createBackground(options: BackgroundOptions): Background {
  return async function* background(request, context) {
    const callId = newId();
    const call = new Call(callStart({ context, callId }, request.path));
    options.calls.enter();
    try {
      const accepted = await accept(request, { call, context, options }).catch((error: unknown) => {
        throw refused(error, { call, context, options });
      });
      if (call.stream) yield* streamed(accepted, { call, context, options });
      else yield* whole(accepted, { call, context, options });
    } finally {
      options.calls.leave();
    }
  };
}

async function* whole(
  accepted: Accepted,
  { context: { caller }, options }: Accepting,
): AsyncGenerator<ExchangeResponse, undefined> {
  const body = accepted.replayed
    ? await options.background.standing(caller.accountId, idOf(accepted.taskId))
    : Buffer.from(JSON.stringify(accepted.begun));
  const headers = { "content-type": "application/json", ...replyHeaders({}, body.length) };
  yield headPart({ ...headers, ...headersOf(accepted) });
  yield chunkPart(body);
}

/** The client may leave: what was accepted is made all the same, and can be read on from any place. */
async function* streamed(
  accepted: Accepted,
  { context: { caller, signal }, options }: Accepting,
): AsyncGenerator<ExchangeResponse, undefined> {
  const { taskId } = accepted;
  const of = { accountId: caller.accountId, responseId: idOf(taskId), taskId };
  if (accepted.replayed) await requireStreamed(of, options.events);
  yield headPart({ ...streamHeaders, ...headersOf(accepted) });
  for await (const events of follow({ ...of, after: -1, signal }, options)) yield chunkPart(events);
}

/** How a stream of events begins. */
export const streamHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  ...replyHeaders({}, undefined),
};

function headPart(headers: Record<string, string>): ExchangeResponse {
  return create(ExchangeResponseSchema, {
    part: { case: "head", value: { status: 200, headers } },
  });
}

function chunkPart(value: Buffer): ExchangeResponse {
  return create(ExchangeResponseSchema, { part: { case: "chunk", value } });
}

function headersOf({ dropped, replayed }: Accepted): Record<string, string> {
  return {
    ...(dropped.length > 0 && { "x-uas-dropped": memberList(dropped) }),
    ...(replayed && { "idempotent-replayed": "true" }),
  };
}

interface Accepting {
  readonly call: Call;
  readonly context: ExchangeContext;
  readonly options: BackgroundOptions;
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

async function accept(request: ExchangeRequest, accepting: Accepting): Promise<Accepted> {
  const { call, context, options } = accepting;
  const { id: callId, accountId, requestId } = call.start;
  const { exchange, record, isStreamed } = readBackground(request);
  const door = new WireDoor({ request: exchange, callId, accountId, state: options.state });
  const { text, model, routes, first } = await readCall({ call, door, context }, options);
  call.stream = isStreamed;
  const { counter } = options;
  const { body, source, dropped = [] } = first ?? {};
  const tokens = new RequestTokens({ text, routes, body, source, counter });
  const id = idOf(callId);
  const { path } = request;
  const created = Math.floor(call.startMs / 1000);
  const begun = begunResponse(record, { id, model: model.key, created });
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
function refused(error: unknown, { call, context: { signal }, options }: Accepting): GatewayError {
  const told = toldOf(error, signal);
  endFailed(call, told, { signal, isDone: false });
  explainFailure(call, told, options.log);
  options.ledger.record(call.toRow());
  reportCall(call, options);
  return told;
}
