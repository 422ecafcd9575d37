/**
 * Images and speech in OpenAI's style. Each is a single request that is answered when it is done;
 * there is no idempotency key, so repeats are not recognised.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { errorMember, textMember, bearerHeader } from "../http-vendor.ts";
import { openaiFault } from "./faults.ts";
import { type AudioFormat, audioSeconds } from "../media/length.ts";
import {
  createTaskHttp,
  faultText,
  parseJsonReply,
  type RefusalReader,
  submitTask,
  type TaskHttp,
} from "../task-http.ts";
import {
  numberParam,
  speechSecondsMax,
  speechSecondsTypical,
  stringParam,
} from "../task-params.ts";
import {
  type OpenTasks,
  type Submitted,
  TaskRefused,
  type TaskSubmission,
  type TaskTokens,
  type TaskUnits,
  type VendorFile,
} from "../task.ts";
import { speechSchema, imageSchema, imageBody, speechBody, speechFormat } from "./params.ts";

/**
 * @param isOpenai whether this is OpenAI itself, whose parameters are all known; other servers may
 * have more
 */
export function createOpenaiTasks(config: VendorConfig, isOpenai: boolean): OpenTasks {
  const http = createTaskHttp(config, {
    credential: bearerHeader(config.apiKey),
    isSynchronous: true,
  });
  return {
    resubmit: "blind",
    types: new Set([ModelType.IMAGE, ModelType.AUDIO]),
    canCancel: false,
    submit: (task) => (task.type === ModelType.AUDIO ? speak(http, task) : draw(http, task)),
    paramsSchema: ({ type }) =>
      type === ModelType.AUDIO ? speechSchema(isOpenai) : imageSchema(isOpenai),
    units: (params, { type, maxOutputTokens }) =>
      type === ModelType.AUDIO ? speechUnits(params) : imageUnits(params, maxOutputTokens),
    close: () => http.close(),
  };
}

const words: RefusalReader = {
  faultOf: openaiFault,
  messageOf(body) {
    const error = errorMember(body);
    return error && textMember(error, "message");
  },
  isContent(body) {
    const error = errorMember(body);
    const code = error === undefined ? "" : textMember(error, "code");
    return code === "moderation_blocked" || code === "content_policy_violation";
  },
  isSynchronous: true,
};

/** Lets OpenAI's support find a request; it does not deduplicate repeats. */
function trace({ attemptToken }: TaskSubmission): Readonly<Record<string, string>> {
  return { "x-client-request-id": attemptToken };
}

async function draw(http: TaskHttp, task: TaskSubmission): Promise<Submitted> {
  const { model, params, signal } = task;
  const json = { ...imageBody(params), model };
  const path = "/images/generations";
  const reply = await submitTask(
    http,
    { method: "POST", path, json, headers: trace(task), signal },
    words,
  );
  const answer = parseJsonReply(reply) ?? {};
  const contentType = `image/${stringMember(answer, "output_format") ?? stringParam(params, "outputFormat") ?? "png"}`;
  const data = Array.isArray(answer["data"]) ? answer["data"] : [];
  const files = data.flatMap((item) => fileOf(item, contentType) ?? []);
  if (files.length === 0) throw unreadable("no image");
  const usage = usageOf(answer["usage"]);
  return { done: { files, units: { images: files.length }, ...(usage && { usage }) } };
}

function fileOf(item: unknown, contentType: string): VendorFile | undefined {
  if (typeof item !== "object" || item === null) return undefined;
  const { b64_json: base64, url } = item as JsonObject;
  if (typeof base64 === "string" && base64 !== "") {
    return { bytes: Buffer.from(base64, "base64"), contentType };
  }
  return typeof url === "string" && URL.canParse(url) ? { url, contentType } : undefined;
}

async function speak(http: TaskHttp, task: TaskSubmission): Promise<Submitted> {
  const { model, params, signal } = task;
  const json = { ...speechBody(params), model };
  const path = "/audio/speech";
  const { headers, body } = await submitTask(
    http,
    { method: "POST", path, json, headers: trace(task), signal },
    words,
  );
  const isAudio = body.length > 0 && !/json|html/.test(headers["content-type"] ?? "");
  if (!isAudio) throw unreadable("no audio");
  const format = speechFormat(params);
  const bound = speechUnits(params).seconds ?? 0;
  const typical = speechSecondsTypical(saidOf(params).length, numberParam(params, "speed", 1));
  const measured = audioSeconds(body, format) ?? typical;
  const contentType = audioTypes[format];
  const seconds = Math.min(bound, Math.max(1, Math.ceil(measured)));
  return { done: { files: [{ bytes: body, contentType }], units: { seconds } } };
}

const audioTypes: Readonly<Record<AudioFormat, string>> = {
  mp3: "audio/mpeg",
  opus: "audio/ogg",
  aac: "audio/aac",
  flac: "audio/flac",
  wav: "audio/wav",
  pcm: "audio/L16;rate=24000;channels=1",
};

/**
 * Token limit of an image if the model's configuration has none: twice the largest that OpenAI
 * lists for the best quality.
 */
const imageTokensMax = 16_384;

function imageUnits(params: JsonObject, maxOutputTokens: number): TaskUnits {
  const images = numberParam(params, "n", 1);
  return {
    images,
    // A text has at most as many tokens as bytes.
    inputTokens: Buffer.byteLength(stringParam(params, "prompt") ?? "") + 64,
    outputTokens: images * (maxOutputTokens === 0 ? imageTokensMax : maxOutputTokens),
  };
}

function speechUnits(params: JsonObject): TaskUnits {
  const said = saidOf(params);
  const speed = numberParam(params, "speed", 1);
  return {
    seconds: speechSecondsMax(said.length, speed),
    inputTokens: Buffer.byteLength(said),
  };
}

/** The text to speak. */
function saidOf(params: JsonObject): string {
  return stringParam(params, "text") ?? stringParam(params, "prompt") ?? "";
}

function usageOf(usage: unknown): TaskTokens | undefined {
  if (typeof usage !== "object" || usage === null) return undefined;
  const { input_tokens: inputTokens, output_tokens: outputTokens } = usage as JsonObject;
  const areCounts = [inputTokens, outputTokens].every((each) => Number.isSafeInteger(each));
  return areCounts
    ? { inputTokens: Number(inputTokens), outputTokens: Number(outputTokens) }
    : undefined;
}

function stringMember(object: JsonObject, name: string): string | undefined {
  const value = object[name];
  return typeof value === "string" && /^[a-z]{3,5}$/.test(value) ? value : undefined;
}

/** The request has been answered, so nothing more will come, whatever was produced. */
function unreadable(what: string): TaskRefused {
  return new TaskRefused("upstream_error", `${faultText("upstream_error", undefined)} (${what})`);
}
