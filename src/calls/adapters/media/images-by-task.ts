/** Requests for images. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorCode, GatewayError } from "../../../core/errors.ts";
import type { Sink } from "../../../core/sink.ts";
import { formValue, imageParams, withImageUrls } from "./media-params.ts";
import type { MediaTaskModel, TaskFile } from "./media-tasks.ts";
import { MediaAdapter, type MediaInput } from "./media-adapter.ts";
import { MediaOperation } from "../../../../gen/uas/http/v1/http_pb.ts";
import { readImagesMembers } from "./images-form.ts";
import { ImagesRequest } from "./images-adapter.ts";
import {
  type MediaByTaskOptions,
  type ServeByTask,
  createMediaByTask,
  type AcceptedMedia,
  sendWhole,
  sendEvents,
  type MediaResult,
} from "./media-by-task.ts";

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

/** Properties of the request that shape the reply. */
interface AskedImages {
  readonly isStreamed: boolean;
  /** Whether images are changed instead of made. */
  readonly isEdit: boolean;
  readonly isBase64: boolean;
  /** As requested; `auto` if the model chooses. */
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

/**
 * Whether images come as base64. As with OpenAI, they come as addresses unless the request says
 * otherwise.
 */
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

/**
 * Returns the tokens of a result in OpenAI's form; zeros if the vendor reports none. Vendors do not
 * separate input tokens of images from those of texts.
 */
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
