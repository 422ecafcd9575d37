/**
 * Serves requests for images whose vendors do not speak OpenAI's form: as a task of the model, whose result is awaited.
 * A paid job is therefore never lost, whatever happens to the client or to this process. The task holds and charges; its
 * record is that of the call.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { MediaOperation } from "../../../gen/uas/http/v1/http_pb.ts";
import { GatewayStopping } from "../../core/caller.ts";
import { toAbortSignal } from "../../core/cancel-signal.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { formatUsd } from "../../core/money.ts";
import type { SentReply, Sink } from "../../core/sink.ts";
import { newId } from "../../core/uuid.ts";
import { mediaErrorEvent, mediaEvent } from "../../dialect/media-events.ts";
import { memberList, replyHeaders } from "../headers.ts";
import { admit, read } from "../pipeline/admit.ts";
import type { CallContext, PipelineDeps } from "../pipeline/context.ts";
import { toGatewayError } from "../pipeline/failures.ts";
import { refuse } from "../pipeline/pipeline.ts";
import { refuseDropped } from "../translation.ts";
import { formValue, imageParams, withImageUrls } from "./image-params.ts";
import { readImagesMembers } from "./images-form.ts";
import type { ImageTaskEnd, ImageTaskModel, ImageTasks, TaskImage } from "./image-tasks.ts";
import { ImagesRequest } from "./images-adapter.ts";
import { MediaAdapter, type MediaInput } from "./media-adapter.ts";

/** Options of {@link createImagesByTask}. */
export interface ImagesByTaskOptions extends PipelineDeps {
  readonly tasks: ImageTasks;
}

/** Serves a request for images as a task. @throws GatewayError for failures that were not written to the sink */
export type ImagesByTask = (
  input: MediaInput,
  call: { readonly context: CallContext; readonly sink: Sink<Buffer> },
  model: ImageTaskModel,
) => Promise<SentReply>;

/** Creates the handler. */
export function createImagesByTask(options: ImagesByTaskOptions): ImagesByTask {
  return async function imagesByTask(input, { context, sink }, model) {
    const admitted = admit(imagesAdapter(input), { callId: newId(), context, deps: options });
    try {
      const accepted = await accept(input, { context, options, model, admitted }).catch(
        async (error: unknown) => {
          throw await refuse(error, admitted);
        },
      );
      await (accepted.isStreamed ? stream : whole)(accepted, { context, options, sink });
      return {};
    } finally {
      options.calls.leave();
    }
  };
}

function imagesAdapter(input: MediaInput): MediaAdapter<ImagesRequest> {
  return new MediaAdapter(input, (given) => new ImagesRequest(given, operationOf(given)));
}

function operationOf({ request }: MediaInput): ImagesRequest["operation"] {
  return request.operation === MediaOperation.EDIT_IMAGES ? "editImages" : "generateImages";
}

interface Accepting {
  readonly context: CallContext;
  readonly options: ImagesByTaskOptions;
  readonly model: ImageTaskModel;
  readonly admitted: ReturnType<typeof admit<Buffer>>;
}

/** An accepted request. */
interface Accepted {
  readonly taskId: string;
  readonly isStreamed: boolean;
  /** Whether images are changed instead of made. */
  readonly isEdit: boolean;
  readonly isBase64: boolean;
  readonly reportCost: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

async function accept(
  input: MediaInput,
  { context, options, model, admitted }: Accepting,
): Promise<Accepted> {
  const { request } = input;
  const { body, operation } = read(admitted).request as ImagesRequest;
  const members = await membersOf(input, { body, operation }, model);
  const isBase64 = readResponseFormat(members["response_format"]) || body.stream;
  const { params, dropped } = imageParams(members, model);
  if (request.strict) refuseDropped(dropped);
  const { caller, requestId, idempotencyKey } = context;
  const { id } = admitted.call;
  const { path } = request;
  const starting = { id, caller, requestId, path, model: model.model, params, idempotencyKey };
  const { taskId, replayed } = await options.tasks.start(starting);
  const headers = {
    ...(dropped.length > 0 && { "x-uas-dropped": memberList(dropped) }),
    ...(replayed && { "idempotent-replayed": "true" }),
  };
  const { reportCost } = request;
  const isEdit = operation === "editImages";
  return { taskId, isStreamed: body.stream, isEdit, isBase64, reportCost, headers };
}

/** The members of a request, with its images as addresses. */
async function membersOf(
  { upload }: MediaInput,
  { body, operation }: Pick<ImagesRequest, "body" | "operation">,
  model: ImageTaskModel,
): Promise<JsonObject> {
  if (upload !== undefined)
    return readImagesMembers(upload, (name, value) => formValue(name, value, model));
  const members = "members" in body ? body.members() : {};
  return operation === "editImages" ? withImageUrls(members) : members;
}

/** Whether images come as base64. As with OpenAI, they come as addresses unless the request says otherwise. */
function readResponseFormat(format: unknown): boolean {
  if (format === undefined || format === null || format === "url") return false;
  if (format === "b64_json") return true;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    '"response_format" must be "url" or "b64_json"',
    { param: "response_format" },
  );
}

interface ReplyTo {
  readonly context: CallContext;
  readonly options: ImagesByTaskOptions;
  readonly sink: Sink<Buffer>;
}

async function whole(accepted: Accepted, reply: ReplyTo): Promise<void> {
  const ended = await awaitEnd(accepted, reply);
  const { isBase64 } = accepted;
  const data = await Promise.all(
    ended.images.map(async (image) =>
      isBase64 ? { b64_json: await base64Of(image) } : { url: image.url },
    ),
  );
  const json = { created: Math.floor(ended.finishTime.getTime() / 1000), data, ...usageOf(ended) };
  const body = Buffer.from(JSON.stringify(json));
  const headers = {
    "content-type": "application/json",
    ...replyHeaders({}, body.length),
    ...accepted.headers,
    ...(accepted.reportCost && { "x-uas-cost": formatUsd(ended.costNanos) }),
  };
  reply.sink.whole({ status: 200, headers }, body);
}

/** Streams one event for each image. A task has no partial images. */
async function stream(accepted: Accepted, reply: ReplyTo): Promise<void> {
  const { sink, context } = reply;
  const type = { "content-type": "text/event-stream; charset=utf-8" };
  const headers = { ...type, ...replyHeaders({}, undefined), ...accepted.headers };
  sink.head({ status: 200, headers });
  try {
    const ended = await awaitEnd(accepted, reply);
    for (const image of ended.images) {
      const event = {
        type: `${accepted.isEdit ? "image_edit" : "image_generation"}.completed`,
        b64_json: await base64Of(image),
        created_at: Math.floor(ended.finishTime.getTime() / 1000),
        output_format: image.contentType.replace("image/", ""),
        ...usageOf(ended),
      };
      await sink.chunk(mediaEvent(event));
    }
  } catch (error) {
    await sink.chunk(mediaErrorEvent(toGatewayError(error, context.signal)));
  }
}

async function base64Of(image: TaskImage): Promise<string> {
  return (await image.read()).toString("base64");
}

type Images = Exclude<ImageTaskEnd, { readonly error: GatewayError }>;

function usageOf({ inputTokens, outputTokens }: Images): JsonObject {
  if (inputTokens + outputTokens === 0) return {};
  const total = { total_tokens: inputTokens + outputTokens };
  return { usage: { input_tokens: inputTokens, output_tokens: outputTokens, ...total } };
}

/** Waits for the images. A task whose client disconnects is cancelled, where its vendor can. @throws GatewayError */
async function awaitEnd(
  { taskId }: Accepted,
  { context: { caller, signal, idempotencyKey }, options: { tasks } }: ReplyTo,
): Promise<Images> {
  const { accountId } = caller;
  const ended = await tasks.wait(accountId, taskId, toAbortSignal(signal));
  if (ended?.error !== undefined) throw ended.error;
  if (ended !== undefined) return ended;
  const isStopping = signal.reason instanceof GatewayStopping;
  // With a key, the client means to ask again.
  if (!isStopping && idempotencyKey === undefined) await tasks.cancel(accountId, taskId);
  throw new GatewayError(
    ErrorCode.UPSTREAM_SUBMIT_UNKNOWN,
    `The gateway is stopping, and the images are still being made: get them from GET /api/ai/tasks/${taskId}`,
  );
}
