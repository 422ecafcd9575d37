/**
 * Accepts background responses. An invalid request is refused at once; later failures end the task.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ExchangeRequest } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { withoutServiceTiers } from "../../config/tier-prices.ts";
import { toAbortSignal } from "../../core/cancel-signal.ts";
import { memberOf } from "../../wire/json/source.ts";
import { textAt } from "../../wire/json/value.ts";
import { responseId, pendingResponse } from "../../dialect/responses/response-json.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { Transaction } from "../../provider/task.ts";
import { replyHeaders } from "../../calls/adapters/headers.ts";
import { memberList } from "../../core/member-list.ts";
import { admit, type Admitted, read } from "../../calls/pipeline/admit.ts";
import type { CallContext, PipelineDeps } from "../../calls/pipeline/context.ts";
import { refuse } from "../../calls/pipeline/pipeline.ts";
import { maxUsage, quote } from "../../calls/pipeline/quote.ts";
import type { SentReply, Sink } from "../../core/sink.ts";
import type { CallState } from "../stored/responses-memory.ts";
import type { RequestTokens } from "../../tokens/request-tokens.ts";
import { WireAdapter } from "../../calls/adapters/wire-adapter.ts";
import { initialEvents, followEvents, requireStreamed, type EventLog } from "./event-log.ts";
import { backgroundParams, readBackground } from "./request.ts";
import type { BackgroundState, BackgroundStore } from "./store.ts";
import type { BackgroundStarted, BackgroundTasks } from "./tasks.ts";

/** Options of {@link createBackground}. */
export interface BackgroundOptions extends PipelineDeps {
  /** The state that outlives a call. */
  readonly state: CallState;
  readonly tasks: BackgroundTasks;
  readonly store: BackgroundStore;
  readonly background: BackgroundState;
  readonly events: EventLog;
}

/** Accepts a request, and replies with the response in its current status. */
export type Background = (
  request: ExchangeRequest,
  context: CallContext,
  sink: Sink<Buffer>,
) => Promise<SentReply>;

/** Creates the handler of background requests. */
export function createBackground(options: BackgroundOptions): Background {
  const { clock, state } = options;
  return async function background(request, context, sink) {
    const callId = clock.newId();
    const { accountId } = context.caller;
    const adapter = new WireAdapter({ request, callId, accountId, state, clock });
    const admitted = admit(adapter, { callId, context, deps: options });
    const replyTo = { context, options, sink };
    try {
      const accepted = await accept(request, admitted, options).catch(async (error: unknown) => {
        throw await refuse(error, admitted);
      });
      await (admitted.call.stream ? stream : whole)(accepted, replyTo);
      return {};
    } finally {
      options.admission.leave();
    }
  };
}

interface ReplyTo {
  readonly context: CallContext;
  readonly options: BackgroundOptions;
  readonly sink: Sink<Buffer>;
}

async function whole(
  accepted: Accepted,
  { context: { caller }, options, sink }: ReplyTo,
): Promise<void> {
  const body = accepted.replayed
    ? await options.background.status(caller.accountId, idOf(accepted.taskId))
    : Buffer.from(accepted.pending);
  const headers = { "content-type": "application/json", ...replyHeaders({}, body.length) };
  sink.whole({ status: 200, headers: { ...headers, ...headersOf(accepted) } }, body);
}

/**
 * Streams the events. The client may disconnect: the response continues, and can be read from any
 * event on.
 */
async function stream(
  accepted: Accepted,
  { context: { caller, signal }, options, sink }: ReplyTo,
): Promise<void> {
  const { taskId } = accepted;
  const logged = { accountId: caller.accountId, responseId: idOf(taskId), taskId };
  if (accepted.replayed) await requireStreamed(logged, options.events);
  sink.head({ status: 200, headers: { ...streamHeaders, ...headersOf(accepted) } });
  const followRequest = { ...logged, after: -1, signal: toAbortSignal(signal) };
  for await (const events of followEvents(followRequest, options)) await sink.chunk(events);
}

/** The headers of an event stream. */
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
  /** The pending response as JSON; for a repeated request not the stored one. */
  readonly pending: string;
}

/** The response's id, derived from its call's. */
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
  const { exchange, record, json, isStreamed } = readBackground(request);
  const { clock, state } = options;
  const adapter = new WireAdapter({ request: exchange, callId, accountId, state, clock });
  const readCall = read({ ...admitted, adapter });
  const { model } = readCall;
  // The task is charged by the price of the usual tier.
  const quoted = await quote({ ...readCall, model: withoutServiceTiers(model) });
  const { first, tokens } = quoted;
  const { text } = quoted.request;
  call.stream = isStreamed;
  const { dropped = [] } = first ?? {};
  const id = idOf(callId);
  const { path } = request;
  const created = Math.floor(call.startMs / 1000);
  const pending = pendingResponse(json, { id, model: model.key, created });
  const logged = { accountId, responseId: id, taskId: callId };
  const { caller, idempotencyKey } = context;
  const starting = {
    id: callId,
    caller,
    requestId,
    model,
    idempotencyKey,
    fingerprinted: record as JsonObject,
    params: backgroundParams({ accountId, responseId: id, callId, path, isStreamed }),
    async writeAlongside(transaction: Transaction) {
      const previousResponseId = textAt(record, "previous_response_id") || undefined;
      const input = memberOf(json, "input");
      const row = {
        ...logged,
        model: model.key,
        previousResponseId,
        pending,
        input,
        request: exchange,
      };
      await options.store.begin(transaction, row);
      if (isStreamed) await options.events.writeIn(transaction, logged, initialEvents(pending));
    },
  };
  const outputTokens = text.maxOutputTokens ?? model.maxOutputTokens;
  const start = (inputTokens: number): Promise<BackgroundStarted> =>
    options.tasks.start({
      ...starting,
      units: maxUsage(undefined, first?.features, { inputTokens, outputTokens }),
    });
  const started = await startWithin(tokens, start);
  const fields = { requestId, callId: started.taskId, accountId, model: model.key };
  options.log.info({ ...fields, replayed: started.replayed }, "a background response was accepted");
  return { ...started, dropped, pending };
}

/**
 * Starts a task with the bound of its tokens. As for calls: where the balance does not cover it,
 * the tokens are counted.
 */
async function startWithin(
  tokens: RequestTokens,
  start: (inputTokens: number) => Promise<BackgroundStarted>,
): Promise<BackgroundStarted> {
  try {
    return await start(tokens.bound);
  } catch (error) {
    if (!isInsufficient(error)) throw error;
    const counted = await tokens.countedBound();
    if (counted === undefined || counted >= tokens.bound) throw error;
    return start(counted);
  }
}

function isInsufficient(error: unknown): boolean {
  return error instanceof GatewayError && error.code === ErrorCode.INSUFFICIENT_BALANCE;
}
