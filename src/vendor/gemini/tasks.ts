/**
 * Pictures and films of Gemini: a picture is part of a whole reply, a film (Veo) is an operation that is asked
 * for until it is done. Neither knows a repetition, and no operation can be found but by its name.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, VendorConfig } from "../../config/config.ts";
import { errorMember, textMember, endsWith } from "../http-vendor.ts";
import { geminiFault, geminiRetryAfter } from "./faults.ts";
import { filmSeconds, imageBody, imageSchema, videoBody, videoSchema } from "./params.ts";
import {
  createTaskHttp,
  faultText,
  isOk,
  jsonOf,
  type RefusalWords,
  submitTask,
  type TaskHttp,
  type TaskReply,
  troubleOf,
} from "../task-http.ts";
import { numberParam, stringParam, stringsParam } from "../task-params.ts";
import {
  type OpenTasks,
  type Submitted,
  type TaskFault,
  type TaskNews,
  TaskRefused,
  type TaskSubmission,
  type TaskTokens,
  type TaskUnits,
  type VendorFile,
  VendorTrouble,
} from "../task.ts";

/** Makes them. */
export function createGeminiTasks(config: VendorConfig): OpenTasks {
  const { apiKey } = config;
  const credential = apiKey === undefined ? {} : { "x-goog-api-key": apiKey };
  const version = endsWith(config, "/v1beta") || endsWith(config, "/v1") ? "" : "/v1beta";
  const pictures = createTaskHttp(config, { credential, isSynchronous: true });
  const films = createTaskHttp(config, { credential, isSynchronous: false });
  // The key goes with a file of the vendor's own place only, never to where else an answer may point.
  const { origin } = new URL(config.baseUrl);
  const headersFor = (url: string): Readonly<Record<string, string>> =>
    URL.parse(url)?.origin === origin ? credential : {};
  return {
    resubmit: "blind",
    types: new Set([ModelType.IMAGE, ModelType.VIDEO]),
    canCancel: false,
    submit: (task) =>
      task.type === ModelType.VIDEO ? film(films, task, version) : draw(pictures, task, version),
    async poll(vendorTaskId, signal) {
      const reply = await films.ask({ method: "GET", path: `${version}/${vendorTaskId}`, signal });
      return newsOf(reply, headersFor);
    },
    paramsSchema: ({ type }) => (type === ModelType.VIDEO ? videoSchema : imageSchema),
    units,
    async close() {
      await Promise.all([pictures.close(), films.close()]);
    },
  };
}

const words: RefusalWords = {
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
  const answer = jsonOf(await submitTask(http, request, words)) ?? {};
  const [candidate = {}] = objects(answer["candidates"]);
  const files = objects(member(candidate, "content")["parts"]).flatMap(fileOf);
  if (files.length === 0) throw noPicture(answer, candidate);
  const usage = usageOf(member(answer, "usageMetadata"));
  return { done: { files, units: { images: files.length }, ...(usage && { usage }) } };
}

/** What the model drew, without what it thought of on the way. */
function fileOf(part: JsonObject): readonly VendorFile[] {
  const { mimeType, data } = member(part, "inlineData");
  const isPicture = typeof mimeType === "string" && typeof data === "string" && !part["thought"];
  return isPicture ? [{ bytes: Buffer.from(data, "base64"), contentType: mimeType }] : [];
}

/** Reasons to end, and to block, that are about the content. */
const contentReasons =
  /^(IMAGE_)?(SAFETY|PROHIBITED_CONTENT|RECITATION)$|^(BLOCKLIST|SPII|OTHER_CONTENT|MODEL_ARMOR)$/;

function noPicture(answer: JsonObject, candidate: JsonObject): TaskRefused {
  const blocked = stringParam(member(answer, "promptFeedback"), "blockReason");
  const reason = blocked ?? stringParam(candidate, "finishReason") ?? "no reason";
  const isRejected = blocked !== undefined || contentReasons.test(reason);
  const code = isRejected ? "content_rejected" : "upstream_error";
  return new TaskRefused(code, faultText(code, `no picture, ${reason}`));
}

/** `models/…/operations/…`: it becomes a path, so it must be one. */
const operationForm = /^(?:[A-Za-z]+\/[\w.-]{1,128}\/)?operations\/[\w.-]{1,256}$/;

async function film(http: TaskHttp, task: TaskSubmission, version: string): Promise<Submitted> {
  const { model, params, signal } = task;
  const path = `${pathOf(version, model)}:predictLongRunning`;
  const request = { method: "POST", path, json: videoBody(params), signal } as const;
  const reply = await submitTask(http, request, { ...words, isSynchronous: false });
  const name = jsonOf(reply)?.["name"];
  if (typeof name === "string" && operationForm.test(name) && !name.includes("..")) {
    return { vendorTaskId: name };
  }
  throw new VendorTrouble(reply.status, "answered a film without the name of its operation");
}

type HeadersFor = (url: string) => Readonly<Record<string, string>>;

/** How an operation stands. @throws VendorTrouble where it is none */
function newsOf(reply: TaskReply, headersFor: HeadersFor): TaskNews {
  if (!isOk(reply)) throw troubleOf(reply, words);
  return operationNews(jsonOf(reply) ?? {}, headersFor);
}

/** The same, of what an operation says of itself. @throws VendorTrouble where it is none */
export function operationNews(operation: JsonObject, headersFor: HeadersFor): TaskNews {
  if (typeof operation["name"] !== "string") {
    throw new VendorTrouble(200, "answered with something else than an operation");
  }
  if (operation["done"] !== true) return { status: "running" };
  const { error } = operation;
  if (isObject(error)) {
    return error["code"] === 1
      ? { status: "cancelled" }
      : { status: "failed", error: failureOf(error) };
  }
  return filmOf(member(member(operation, "response"), "generateVideoResponse"), headersFor);
}

/** Where Google's downloads send on to. */
const redirectHosts = [".googleapis.com", ".googleusercontent.com"];

/** A film that the filter took is no film, though the operation went well. */
function filmOf(response: JsonObject, headersFor: HeadersFor): TaskNews {
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

/** By the code of google.rpc.Status, and by what it says. */
function failureOf(error: JsonObject): TaskFault {
  const said = stringParam(error, "message") ?? "";
  if (isContent(said)) return fault("content_rejected", said);
  return error["code"] === 3 ? fault("invalid_parameters", said) : fault("upstream_error", "");
}

function fault(code: TaskFault["code"], said: string): TaskFault {
  return { code, message: faultText(code, said) };
}

/** Thoughts are output. */
function usageOf(usage: JsonObject): TaskTokens | undefined {
  if (typeof usage["promptTokenCount"] !== "number") return undefined;
  const said = numberParam(usage, "candidatesTokenCount", 0);
  const thought = numberParam(usage, "thoughtsTokenCount", 0);
  return { inputTokens: usage["promptTokenCount"], outputTokens: said + thought };
}

/** What a picture can come to in tokens where the model's configuration does not say: the longest reply that
 * Google lists for a model that draws. */
const imageTokensMax = 32_768;

/** What a picture that is read is, in tokens, at most. */
const readTokensMax = 2_580;

function units(params: JsonObject, { type, maxOutputTokens }: ModelConfig): TaskUnits {
  if (type === ModelType.VIDEO) return { seconds: numberParam(params, "duration", filmSeconds) };
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
