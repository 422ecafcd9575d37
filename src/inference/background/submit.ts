/** Accepts responses in the background: what is wrong with a request is told now, the rest by its task. */
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
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
import { memberList } from "../headers.ts";
import { readCall } from "../read-call.ts";
import { explainFailure, reportCall } from "../report.ts";
import type { ExchangeContext, ExchangeOptions } from "../run-options.ts";
import { RequestTokens } from "../tokens/request-tokens.ts";
import { WireDoor } from "../wire-door.ts";
import { backgroundParams } from "./params.ts";
import { readBackground } from "./request.ts";
import type { BackgroundStore } from "./store.ts";
import type { BackgroundStarted, BackgroundTasks } from "./tasks.ts";

/** What {@link createBackground} needs. */
export interface BackgroundOptions extends ExchangeOptions {
  readonly tasks: BackgroundTasks;
  readonly store: BackgroundStore;
  /** The response of an account as it stands, as JSON. */
  readonly standing: (accountId: string, responseId: string) => Promise<Buffer>;
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
      const { accountId } = context.caller;
      const body = accepted.replayed
        ? await options.standing(accountId, idOf(accepted.taskId))
        : Buffer.from(JSON.stringify(accepted.begun));
      yield part({ case: "head", value: { status: 200, headers: headersOf(accepted, body) } });
      yield part({ case: "chunk", value: body });
    } finally {
      options.calls.leave();
    }
  };
}

function part(value: MessageInitShape<typeof ExchangeResponseSchema>["part"]): ExchangeResponse {
  return create(ExchangeResponseSchema, value === undefined ? {} : { part: value });
}

function headersOf({ dropped, replayed }: Accepted, body: Buffer): Record<string, string> {
  return {
    "content-type": "application/json",
    "content-length": String(body.length),
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
  const created = Math.floor(call.startMs / 1000);
  const begun = begunResponse(record, { id, model: model.key, created });
  const previousResponseId = textAt(record, "previous_response_id") || undefined;
  const { path } = request;
  const starting = {
    id: callId,
    caller: context.caller,
    requestId,
    model,
    params: backgroundParams({ accountId, responseId: id, callId, path, isStreamed }),
    idempotencyKey: context.idempotencyKey,
    asked: record as JsonObject,
    within: (transaction: Parameters<BackgroundStore["begin"]>[0]) =>
      options.store.begin(transaction, {
        ...{ accountId, responseId: id, taskId: callId, model: model.key, previousResponseId },
        ...{ begun, input: record["input"], request: exchange },
      }),
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
