/**
 * Images and videos of Gemini. An image is part of a whole reply; a video (Veo) is an operation
 * that is polled until it is done. Repeats are not recognised, and operations are found by name
 * only.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { readUsage } from "../../dialect/gemini/usage.ts";
import { errorMember, textMember, baseUrlEndsWith } from "../http-vendor.ts";
import { geminiFault, geminiRetryAfter } from "./faults.ts";
import { defaultVideoSeconds, imageBody, imageSchema, videoBody, videoSchema } from "./params.ts";
import {
  createTaskHttp,
  faultText,
  isOk,
  parseJsonReply,
  type RefusalReader,
  submitTask,
  type TaskHttp,
  type TaskReply,
  readReplyError,
} from "../task-http.ts";
import { numberParam, stringParam, stringsParam } from "../task-params.ts";
import {
  type OpenTasks,
  type Submitted,
  type TaskFault,
  type TaskUpdate,
  TaskRefused,
  type TaskSubmission,
  type TaskTokens,
  type TaskUnits,
  type VendorFile,
  VendorReplyError,
  type UnitModel,
} from "../task.ts";

/** Creates the adapter. */
export function createGeminiTasks(config: VendorConfig): OpenTasks {
  const { apiKey } = config;
  const credential = apiKey === undefined ? {} : { "x-goog-api-key": apiKey };
  const version =
    baseUrlEndsWith(config, "/v1beta") || baseUrlEndsWith(config, "/v1") ? "" : "/v1beta";
  const imageHttp = createTaskHttp(config, { credential, isSynchronous: true });
  const videoHttp = createTaskHttp(config, { credential, isSynchronous: false });
  // The key is sent only with files on the vendor's own host, wherever else a reply may point.
  const { origin } = new URL(config.baseUrl);
  const headersFor = (url: string): Readonly<Record<string, string>> =>
    URL.parse(url)?.origin === origin ? credential : {};
  return {
    resubmit: "blind",
    types: new Set([ModelType.IMAGE, ModelType.VIDEO]),
    canCancel: false,
    submit: (task) =>
      task.type === ModelType.VIDEO
        ? submitVideo(videoHttp, task, version)
        : draw(imageHttp, task, version),
    async poll(vendorTaskId, signal) {
      const reply = await videoHttp.send({
        method: "GET",
        path: `${version}/${vendorTaskId}`,
        signal,
      });
      return updateOf(reply, headersFor);
    },
    paramsSchema: ({ type }) => (type === ModelType.VIDEO ? videoSchema : imageSchema),
    units,
    async close() {
      await Promise.all([imageHttp.close(), videoHttp.close()]);
    },
  };
}

const words: RefusalReader = {
  faultOf: geminiFault,
  retryAfterOf: geminiRetryAfter,
  messageOf(body) {
    const error = errorMember(body);
    return error && textMember(error, "message");
  },
  isContent: (body) => isContent(textMember(errorMember(body) ?? {}, "message")),
  isSynchronous: true,
};

function isContent(text: string): boolean {
  return /\b(usage guidelines|responsible ai|safety (filter|setting|polic)\w*|sensitive words)\b/i.test(
    text,
  );
}

function pathOf(version: string, model: string): string {
  const name = model.includes("/") ? model : `models/${model}`;
  return `${version}/${name.split("/").map(encodeURIComponent).join("/")}`;
}

async function draw(http: TaskHttp, task: TaskSubmission, version: string): Promise<Submitted> {
  const { model, params, signal } = task;
  const path = `${pathOf(version, model)}:generateContent`;
  const request = { method: "POST", path, json: imageBody(params), signal } as const;
  const answer = parseJsonReply(await submitTask(http, request, words)) ?? {};
  const [candidate = {}] = objects(answer["candidates"]);
  const files = objects(member(candidate, "content")["parts"]).flatMap(fileOf);
  if (files.length === 0) throw noImage(answer, candidate);
  const usage = usageOf(member(answer, "usageMetadata"));
  return { done: { files, units: { images: files.length }, ...(usage && { usage }) } };
}

/** The image in a part; images made while thinking do not count. */
function fileOf(part: JsonObject): readonly VendorFile[] {
  const { mimeType, data } = member(part, "inlineData");
  const isImage = typeof mimeType === "string" && typeof data === "string" && !part["thought"];
  return isImage ? [{ bytes: Buffer.from(data, "base64"), contentType: mimeType }] : [];
}

/** Finish and block reasons about the content. */
const contentReasons =
  /^(IMAGE_)?(SAFETY|PROHIBITED_CONTENT|RECITATION)$|^(BLOCKLIST|SPII|OTHER_CONTENT|MODEL_ARMOR)$/;

function noImage(answer: JsonObject, candidate: JsonObject): TaskRefused {
  const blocked = stringParam(member(answer, "promptFeedback"), "blockReason");
  const reason = blocked ?? stringParam(candidate, "finishReason") ?? "no reason";
  const isRejected = blocked !== undefined || contentReasons.test(reason);
  const code = isRejected ? "content_rejected" : "upstream_error";
  return new TaskRefused(code, faultText(code, `no image, ${reason}`));
}

/** `models/…/operations/…`. It becomes part of a path, so it must be well-formed. */
const operationForm = /^(?:[A-Za-z]+\/[\w.-]{1,128}\/)?operations\/[\w.-]{1,256}$/;

async function submitVideo(
  http: TaskHttp,
  task: TaskSubmission,
  version: string,
): Promise<Submitted> {
  const { model, params, signal } = task;
  const path = `${pathOf(version, model)}:predictLongRunning`;
  const request = { method: "POST", path, json: videoBody(params), signal } as const;
  const reply = await submitTask(http, request, { ...words, isSynchronous: false });
  const name = parseJsonReply(reply)?.["name"];
  if (typeof name === "string" && operationForm.test(name) && !name.includes("..")) {
    return { vendorTaskId: name };
  }
  throw new VendorReplyError(reply.status, "accepted a video without the name of its operation");
}

type HeadersFor = (url: string) => Readonly<Record<string, string>>;

/** Reads the state of an operation. @throws VendorReplyError if the reply is not an operation */
function updateOf(reply: TaskReply, headersFor: HeadersFor): TaskUpdate {
  if (!isOk(reply)) throw readReplyError(reply, words);
  return operationUpdate(parseJsonReply(reply) ?? {}, headersFor);
}

/** Reads the state from an operation's JSON. @throws VendorReplyError if it is no operation */
export function operationUpdate(operation: JsonObject, headersFor: HeadersFor): TaskUpdate {
  if (typeof operation["name"] !== "string") {
    throw new VendorReplyError(200, "answered with something else than an operation");
  }
  if (operation["done"] !== true) return { status: "running" };
  const { error } = operation;
  if (isObject(error)) {
    return error["code"] === 1
      ? { status: "cancelled" }
      : { status: "failed", error: failureOf(error) };
  }
  return videoOf(member(member(operation, "response"), "generateVideoResponse"), headersFor);
}

/** Hosts that Google's downloads redirect to. */
const redirectHosts = [".googleapis.com", ".googleusercontent.com"];

/** A video removed by the safety filter is missing from a successful operation. */
function videoOf(response: JsonObject, headersFor: HeadersFor): TaskUpdate {
  const files = objects(response["generatedSamples"]).flatMap((sample): VendorFile[] => {
    const { uri } = member(sample, "video");
    return typeof uri === "string" && URL.canParse(uri)
      ? [{ url: uri, headers: headersFor(uri), redirectHosts, contentType: "video/mp4" }]
      : [];
  });
  if (files.length > 0) return { status: "completed", outcome: { files } };
  const reasons = stringsParam(response, "raiMediaFilteredReasons").join(" ");
  const code =
    numberParam(response, "raiMediaFilteredCount", 0) > 0 ? "content_rejected" : "upstream_error";
  return { status: "failed", error: { code, message: faultText(code, reasons) } };
}

/** Classifies a failure by the google.rpc.Status code and message. */
function failureOf(error: JsonObject): TaskFault {
  const said = stringParam(error, "message") ?? "";
  if (isContent(said)) return fault("content_rejected", said);
  return error["code"] === 3 ? fault("invalid_parameters", said) : fault("upstream_error", "");
}

function fault(code: TaskFault["code"], said: string): TaskFault {
  return { code, message: faultText(code, said) };
}

/** Thinking counts as output. */
function usageOf(usage: JsonObject): TaskTokens | undefined {
  const { inputTokens, outputTokens } = readUsage({ usageMetadata: usage }) ?? {};
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  return { inputTokens, outputTokens };
}

/**
 * Token limit of an image if the model's configuration has none: the longest reply that Google
 * lists for an image model.
 */
const imageTokensMax = 32_768;

/** Most tokens of an input image. */
const readTokensMax = 2_580;

function units(params: JsonObject, { type, maxOutputTokens }: UnitModel): TaskUnits {
  if (type === ModelType.VIDEO)
    return { seconds: numberParam(params, "duration", defaultVideoSeconds) };
  const bytes = Buffer.byteLength(stringParam(params, "prompt") ?? "");
  return {
    images: 1,
    inputTokens: bytes + 64 + stringsParam(params, "imageUrls").length * readTokensMax,
    outputTokens: maxOutputTokens === 0 ? imageTokensMax : maxOutputTokens,
  };
}

function member(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isObject(value) ? value : {};
}

function objects(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
