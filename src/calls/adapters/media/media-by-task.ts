/**
 * Serves requests for images and speech whose vendors do not speak OpenAI's form: it runs a task of
 * the model and waits for the result. A paid job is therefore never lost, whatever happens to the
 * client or to this process. The task holds and charges; its record is the record of the call.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { GatewayStopping } from "../../../core/caller.ts";
import { toAbortSignal } from "../../../core/cancel-signal.ts";
import { ErrorCode, GatewayError } from "../../../core/errors.ts";
import { formatUsd } from "../../../core/money.ts";
import type { SentReply, Sink } from "../../../core/sink.ts";
import { mediaErrorEvent, mediaEvent } from "../../../dialect/operations/media-events.ts";
import { replyHeaders } from "../headers.ts";
import { memberList } from "../../../core/member-list.ts";
import { admit, read } from "../../pipeline/admit.ts";
import type { CallContext, PipelineDeps } from "../../pipeline/context.ts";
import { toGatewayError } from "../../pipeline/failures.ts";
import { refuse } from "../../pipeline/pipeline.ts";
import { refuseDropped } from "../translation.ts";
import type { TaskParams } from "./media-params.ts";
import type { MediaTaskEnd, MediaTaskModel, MediaTasks } from "./media-tasks.ts";
import { MediaAdapter, type MediaInput, type MediaRequest } from "./media-adapter.ts";

/** Options of requests that run as tasks. */
export interface MediaByTaskOptions extends PipelineDeps {
  readonly tasks: MediaTasks;
}

/**
 * Serves a request as a task. @throws GatewayError for failures that were not written to the sink
 */
export type ServeByTask = (
  input: MediaInput,
  call: { readonly context: CallContext; readonly sink: Sink<Buffer> },
  model: MediaTaskModel,
) => Promise<SentReply>;

/** One form of requests that run as tasks. */
interface MediaForm<Read extends MediaRequest, Asked> {
  /** Noun for the result in error messages, such as `images`. */
  readonly what: string;
  adapter(input: MediaInput): MediaAdapter<Read>;
  /**
   * Reads the parameters of the task, and what the reply depends on. @throws GatewayError
   * INVALID_REQUEST
   */
  read(
    input: MediaInput,
    request: Read,
    model: MediaTaskModel,
  ): Promise<TaskParams & { readonly asked: Asked }>;
  /** Sends the reply. @throws GatewayError */
  reply(accepted: AcceptedMedia<Asked>, sink: Sink<Buffer>): Promise<void>;
}

/** The result of a task. */
export type MediaResult = Exclude<MediaTaskEnd, { readonly error: GatewayError }>;

/** An accepted request. */
export interface AcceptedMedia<Asked> {
  readonly asked: Asked;
  readonly context: CallContext;
  readonly reportCost: boolean;
  /** Reply headers that state how the request was accepted. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Waits for the result. A task whose client disconnects is cancelled, if its vendor can. @throws
   * GatewayError
   */
  result(): Promise<MediaResult>;
}

/** Sends a complete reply. */
export function sendWhole(
  { headers, reportCost }: AcceptedMedia<unknown>,
  sink: Sink<Buffer>,
  {
    body,
    type,
    ended,
  }: { readonly body: Buffer; readonly type: string; readonly ended: MediaResult },
): void {
  const all = {
    "content-type": type,
    ...replyHeaders({}, body.length),
    ...headers,
    ...(reportCost && { "x-uas-cost": formatUsd(ended.costNanos) }),
  };
  sink.whole({ status: 200, headers: all }, body);
}

/** Sends the result as events, once it is there; a failure is the last one. */
export async function sendEvents(
  accepted: AcceptedMedia<unknown>,
  sink: Sink<Buffer>,
  events: (ended: MediaResult) => AsyncIterable<JsonObject & { readonly type: string }>,
): Promise<void> {
  const type = { "content-type": "text/event-stream; charset=utf-8" };
  const headers = { ...type, ...replyHeaders({}, undefined), ...accepted.headers };
  sink.head({ status: 200, headers });
  try {
    for await (const event of events(await accepted.result())) await sink.chunk(mediaEvent(event));
  } catch (error) {
    await sink.chunk(mediaErrorEvent(toGatewayError(error, accepted.context.signal)));
  }
}

/** Creates the handler of a form. */
export function createMediaByTask<Read extends MediaRequest, Asked>(
  options: MediaByTaskOptions,
  form: MediaForm<Read, Asked>,
): ServeByTask {
  const start = async (
    input: MediaInput,
    { context, id, request }: { context: CallContext; id: string; request: Read },
    model: MediaTaskModel,
  ): Promise<AcceptedMedia<Asked>> => {
    const { strict, path, reportCost } = input.request;
    const { params, dropped, asked } = await form.read(input, request, model);
    if (strict) refuseDropped(dropped);
    const { caller, requestId, idempotencyKey } = context;
    const starting = { id, caller, requestId, path, model: model.model, params, idempotencyKey };
    const { taskId, replayed } = await options.tasks.start(starting);
    const headers = {
      ...(dropped.length > 0 && { "x-uas-dropped": memberList(dropped) }),
      ...(replayed && { "idempotent-replayed": "true" }),
    };
    const result = () => awaitResult(taskId, form.what, { context, tasks: options.tasks });
    return { asked, context, reportCost, headers, result };
  };
  return async function serveByTask(input, { context, sink }, model) {
    const admitted = admit(form.adapter(input), {
      callId: options.clock.newId(),
      context,
      deps: options,
    });
    try {
      const accept = async (): Promise<AcceptedMedia<Asked>> => {
        const request = read(admitted).request as Read;
        return start(input, { context, id: admitted.call.id, request }, model);
      };
      const accepted = await accept().catch(async (error: unknown) => {
        throw await refuse(error, admitted);
      });
      await form.reply(accepted, sink);
      return {};
    } finally {
      options.admission.leave();
    }
  };
}

async function awaitResult(
  taskId: string,
  what: string,
  { context, tasks }: { readonly context: CallContext; readonly tasks: MediaTasks },
): Promise<MediaResult> {
  const { caller, signal, idempotencyKey } = context;
  const { accountId } = caller;
  const ended = await tasks.wait(accountId, taskId, toAbortSignal(signal));
  if (ended?.error !== undefined) throw ended.error;
  if (ended !== undefined) return ended;
  const isStopping = signal.reason instanceof GatewayStopping;
  // With a key, the client means to ask again.
  if (!isStopping && idempotencyKey === undefined) await tasks.cancel(accountId, taskId);
  throw new GatewayError(
    ErrorCode.UPSTREAM_SUBMIT_UNKNOWN,
    `The gateway is stopping, and the ${what} still being made: get the result from GET /api/ai/tasks/${taskId}`,
  );
}
