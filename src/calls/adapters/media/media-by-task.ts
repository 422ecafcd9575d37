/**
 * Serves requests for images and speech whose vendors do not speak OpenAI's form: as a task of the model, whose result is
 * awaited. A paid job is therefore never lost, whatever happens to the client or to this process. The task holds and
 * charges; its record is that of the call.
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
import {
  type TaskParams,
  formValue,
  imageParams,
  withImageUrls,
  speechParams,
} from "./media-params.ts";
import type { MediaTaskEnd, MediaTaskModel, MediaTasks, TaskFile } from "./media-tasks.ts";
import { MediaAdapter, type MediaInput, type MediaRequest } from "./media-adapter.ts";
import { MediaOperation } from "../../../../gen/uas/http/v1/http_pb.ts";
import { readImagesMembers } from "./images-form.ts";
import { ImagesRequest } from "./images-adapter.ts";
import { asBuffer } from "../../../core/bytes.ts";
import { invalid } from "../../../core/validation.ts";
import { SpeechRequest } from "./audio-adapter.ts";

/** Options of requests that run as tasks. */
export interface MediaByTaskOptions extends PipelineDeps {
  readonly tasks: MediaTasks;
}

/** Serves a request as a task. @throws GatewayError for failures that were not written to the sink */
export type ServeByTask = (
  input: MediaInput,
  call: { readonly context: CallContext; readonly sink: Sink<Buffer> },
  model: MediaTaskModel,
) => Promise<SentReply>;

/** One form of requests that run as tasks. */
interface MediaForm<Read extends MediaRequest, Asked> {
  /** What the result is, in errors: `images`. */
  readonly what: string;
  adapter(input: MediaInput): MediaAdapter<Read>;
  /** Reads the parameters of the task, and what the reply depends on. @throws GatewayError INVALID_REQUEST */
  read(
    input: MediaInput,
    request: Read,
    model: MediaTaskModel,
  ): Promise<TaskParams & { readonly asked: Asked }>;
  /** Sends the reply. @throws GatewayError */
  reply(accepted: AcceptedMedia<Asked>, sink: Sink<Buffer>): Promise<void>;
}

/** The result of a task. */
type MediaResult = Exclude<MediaTaskEnd, { readonly error: GatewayError }>;

/** An accepted request. */
interface AcceptedMedia<Asked> {
  readonly asked: Asked;
  readonly context: CallContext;
  readonly reportCost: boolean;
  /** Headers of the reply that tell how the request was accepted. */
  readonly headers: Readonly<Record<string, string>>;
  /** Waits for the result. A task whose client disconnects is cancelled, where its vendor can. @throws GatewayError */
  result(): Promise<MediaResult>;
}

/** Sends a complete reply. */
function sendWhole(
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
async function sendEvents(
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
function createMediaByTask<Read extends MediaRequest, Asked>(
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

// Requests for images.

/** Creates the handler of requests for images. */
export function createImagesByTask(options: MediaByTaskOptions): ServeByTask {
  return createMediaByTask<ImagesRequest, AskedImages>(options, {
    what: "images are",
    adapter: (input) =>
      new MediaAdapter(input, (given) => new ImagesRequest(given, operationOf(given))),
    async read(input, request, model) {
      const members = await membersOf(input, request, model);
      const isStreamed = request.body.stream;
      const isBase64 = readResponseFormat(members["response_format"]) || isStreamed;
      const isEdit = request.operation === "editImages";
      const found = imageParams(members, model);
      const told = (name: string): string => {
        const { [name]: value } = members;
        return typeof value === "string" && !found.dropped.includes(name) ? value : "auto";
      };
      const form = { size: told("size"), quality: told("quality"), background: told("background") };
      return { ...found, asked: { isStreamed, isEdit, isBase64, form } };
    },
    reply: (accepted, sink) =>
      (accepted.asked.isStreamed ? streamImages : sendImages)(accepted, sink),
  });
}

/** What the reply depends on. */
interface AskedImages {
  readonly isStreamed: boolean;
  /** Whether images are changed instead of made. */
  readonly isEdit: boolean;
  readonly isBase64: boolean;
  /** As requested; `auto` where the model chooses. */
  readonly form: Readonly<Record<"size" | "quality" | "background", string>>;
}

function operationOf({ request }: MediaInput): ImagesRequest["operation"] {
  return request.operation === MediaOperation.EDIT_IMAGES ? "editImages" : "generateImages";
}

/** The members of a request, with its images as addresses. */
async function membersOf(
  { upload }: MediaInput,
  { body, operation }: Pick<ImagesRequest, "body" | "operation">,
  model: MediaTaskModel,
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

async function sendImages(accepted: AcceptedMedia<AskedImages>, sink: Sink<Buffer>): Promise<void> {
  const ended = await accepted.result();
  const { isBase64 } = accepted.asked;
  const data = await Promise.all(
    ended.files.map(async (image) =>
      isBase64 ? { b64_json: await base64Of(image) } : { url: image.url },
    ),
  );
  const usage = imageUsage(ended);
  const json = { created: secondOf(ended), data, ...(usage.total_tokens > 0 && { usage }) };
  const body = Buffer.from(JSON.stringify(json));
  sendWhole(accepted, sink, { body, type: "application/json", ended });
}

/** Streams one event for each image. A task has no partial images. */
function streamImages(accepted: AcceptedMedia<AskedImages>, sink: Sink<Buffer>): Promise<void> {
  const { form } = accepted.asked;
  const type = `${accepted.asked.isEdit ? "image_edit" : "image_generation"}.completed`;
  return sendEvents(accepted, sink, async function* (ended) {
    for (const image of ended.files) {
      yield {
        type,
        b64_json: await base64Of(image),
        created_at: secondOf(ended),
        output_format: image.contentType.replace("image/", ""),
        ...form,
        usage: imageUsage(ended),
      };
    }
  });
}

/** The tokens of a result, in OpenAI's form; zeros where its vendor reports none. Vendors do not tell the tokens of images
 * in the input from those of texts. */
function imageUsage({ inputTokens, outputTokens }: MediaResult) {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { image_tokens: 0, text_tokens: inputTokens },
    output_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
}

function secondOf({ finishTime }: MediaResult): number {
  return Math.floor(finishTime.getTime() / 1000);
}

async function base64Of(image: TaskFile): Promise<string> {
  return (await image.read()).toString("base64");
}

// Requests for speech.

/** Creates the handler of requests for speech. */
export function createSpeechByTask(options: MediaByTaskOptions): ServeByTask {
  return createMediaByTask<SpeechRequest, AskedSpeech>(options, {
    what: "audio is",
    adapter: (input) => new MediaAdapter(input, (given) => new SpeechRequest(given)),
    async read({ request }, _read, model) {
      const members = JSON.parse(asBuffer(request.body).toString("utf8")) as JsonObject;
      const isStreamed = readStreamFormat(members["stream_format"]);
      return { ...speechParams(members, model), asked: { isStreamed } };
    },
    reply: (accepted, sink) =>
      (accepted.asked.isStreamed ? streamSpeech : sendSpeech)(accepted, sink),
  });
}

/** What the reply depends on. */
interface AskedSpeech {
  /** Whether the audio comes as events. */
  readonly isStreamed: boolean;
}

function readStreamFormat(format: unknown): boolean {
  if (format === undefined || format === null || format === "audio") return false;
  if (format === "sse") return true;
  throw invalid("stream_format", '"stream_format" must be "audio" or "sse"');
}

/** The file with the speech. A model may add others, such as the times of words. */
function audioOf({ files }: MediaResult): TaskFile {
  const audio = files.find(({ contentType }) => contentType.startsWith("audio/")) ?? files[0];
  if (audio !== undefined) return audio;
  throw new GatewayError(ErrorCode.UPSTREAM_ERROR, "The model's vendor sent no audio; try again");
}

async function sendSpeech(accepted: AcceptedMedia<AskedSpeech>, sink: Sink<Buffer>): Promise<void> {
  const ended = await accepted.result();
  const audio = audioOf(ended);
  sendWhole(accepted, sink, { body: await audio.read(), type: audio.contentType, ended });
}

/** Sends all audio as one event, and the end as another one. */
function streamSpeech(accepted: AcceptedMedia<AskedSpeech>, sink: Sink<Buffer>): Promise<void> {
  return sendEvents(accepted, sink, async function* (ended) {
    const bytes = await audioOf(ended).read();
    yield { type: "speech.audio.delta", audio: bytes.toString("base64") };
    const { inputTokens, outputTokens } = ended;
    const total = { total_tokens: inputTokens + outputTokens };
    const usage = { input_tokens: inputTokens, output_tokens: outputTokens, ...total };
    yield { type: "speech.audio.done", usage };
  });
}
