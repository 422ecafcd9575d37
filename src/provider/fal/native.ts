/** fal's own interface: its queue and its direct calls, below one prefix. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { isRecord } from "../../wire/json/value.ts";
import type { GatewayError } from "../../core/errors.ts";
import { FalMeter, FalTextMeter } from "./meter.ts";
import { falApp, falJobId, falUpdate, falResult, falStatus } from "./tasks.ts";
import { falCountNames, falMegapixels, falSecondsNames, assumedSeconds } from "./params.ts";
import type {
  NativeApi,
  NativeCallbackRequest,
  NativeLimits,
  NativeMeter,
  NativeMeterContext,
  NativeRequest,
  NativeRoute,
  NativeTask,
} from "../native.ts";
import { readNumber } from "../native-http.ts";
import type { TaskUnits } from "../task.ts";
import { atLeast, minChargedSeconds } from "../task-params.ts";

/** `owner/app`, and often a path that is part of the model's name. */
const segment = "[\\w-][\\w.-]{0,127}";
const modelName = `(?<model>${segment}(?:/${segment}){0,7})`;
const inModel = { in: "path", group: "model", selector: "model" } as const;
const types = [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO] as const;

const appName = `${segment}(?:/${segment}){0,2}`;
const idForm = "(?<id>[\\w-]{1,200})";
const idOf = ({ groups }: NativeRequest): string => groups["id"] ?? "";

/** Maximum time for which a job may wait and run. */
const retentionMs = 24 * 60 * 60 * 1_000;

const jobs: NativeTask = {
  collection: "requests",
  idOf: falJobId,
  // Includes the log; clients that do not need it ignore the member.
  path: (id, model) => `/${falApp(model)}/requests/${id}/status?logs=1`,
  cancel: { method: "PUT", path: (id, model) => `/${falApp(model)}/requests/${id}/cancel` },
  statusOf: falStatus,
  httpStatusOf: ({ status }) => (status === "COMPLETED" ? 200 : 202),
  readUpdate: falUpdate,
  result: { path: (id, model) => `/${falApp(model)}/requests/${id}`, readUpdate: falResult },
  retentionMs: retentionMs,
  // fal's clients ask every 500 ms, and show logs while a job is IN_PROGRESS: fast models run for
  // less than the second for which other vendors' reports are kept.
  refreshMs: 400,
};

function ofJob(method: "GET" | "PUT", rest: string) {
  const path = new RegExp(`^/queue(?<path>/${appName}/requests/${idForm}${rest})$`);
  return { method, path, target: toQueue, id: idOf, task: jobs } as const;
}

/**
 * File storage: the reply is an address to upload to, and one that the file will have. Both are
 * unguessable.
 */
const uploads: NativeRoute = {
  kind: "pass",
  method: "POST",
  path: /^\/rest(?<path>\/storage\/upload\/initiate(?:-multipart)?)$/,
  isUpload: true,
  target: ({ groups }) => ({ base: "rest", path: groups["path"] ?? "" }),
};

const routes: readonly NativeRoute[] = [
  uploads,
  { kind: "poll", ...ofJob("GET", "/status") },
  {
    kind: "poll",
    ...ofJob("GET", "/status/stream"),
    livePath: (id, model) => `/${falApp(model)}/requests/${id}/status/stream`,
  },
  {
    kind: "poll",
    ...ofJob("GET", ""),
    livePath: (id, model) => `/${falApp(model)}/requests/${id}`,
    // Clients compare the text.
    pending: { status: 400, json: { detail: "Request is still in progress" } },
  },
  { kind: "cancel", ...ofJob("PUT", "/cancel") },
  {
    kind: "submit",
    method: "POST",
    path: new RegExp(`^/queue(?<path>/${modelName})$`),
    target: toQueue,
    model: inModel,
    types,
    units: falRequestUnits,
    assumedSeconds: assumedSeconds,
    task: jobs,
  },
  {
    kind: "call",
    method: "POST",
    path: new RegExp(`^/run(?<path>/${modelName}/stream)$`),
    target,
    model: inModel,
    types,
    limits,
    reply: () => "events",
    meter,
    isJob: true,
  },
  {
    kind: "call",
    method: "POST",
    path: new RegExp(`^/run(?<path>/${modelName})$`),
    target,
    model: inModel,
    types,
    limits,
    reply: () => "whole",
    meter,
    isJob: true,
  },
];

function toQueue({ groups }: NativeRequest): { readonly base: string; readonly path: string } {
  return { base: "queue", path: groups["path"] ?? "" };
}

function target({ groups }: NativeRequest): { readonly base: string; readonly path: string } {
  return { base: "run", path: groups["path"] ?? "" };
}

function limits(request: NativeRequest, model: ModelConfig): NativeLimits {
  if (model.type === ModelType.TEXT) return { maxOutputTokens: outputTokens(request, model) };
  const most = atLeast(falRequestUnits(request, model), model.minSeconds ?? assumedSeconds);
  const isSizeOpen = most.images !== undefined && pixelsIn(request) === 0;
  return { maxOutputTokens: 0, ...most, ...(isSizeOpen && { maxImages: 2 * most.images }) };
}

function meter({ request, model, headers }: NativeMeterContext): NativeMeter {
  if (model.type === ModelType.TEXT) return new FalTextMeter();
  const requested = atLeast(falRequestUnits(request, model), model.minSeconds ?? minChargedSeconds);
  return new FalMeter({ type: model.type, requested, headers });
}

/** Returns the requested units: the maximum that can be charged. */
export function falRequestUnits(
  request: NativeRequest,
  model: Pick<ModelConfig, "type" | "maxOutputTokens">,
): TaskUnits {
  const { type } = model;
  if (type === ModelType.TEXT) {
    return { inputTokens: request.inputTokens, outputTokens: outputTokens(request, model) };
  }
  if (type !== ModelType.IMAGE) return { seconds: secondsIn(request) };
  const counts = falCountNames.map((name) => readNumber(request.member(name), name) ?? 1);
  return { images: Math.ceil(Math.max(1, ...counts)) * megapixelsIn(request) };
}

/**
 * A model may ignore the limit of its request, so the limit of its configuration counts as well.
 */
function outputTokens(
  request: NativeRequest,
  { maxOutputTokens }: Pick<ModelConfig, "maxOutputTokens">,
): number {
  return Math.max(maxOutputTokens, readNumber(request.member("max_tokens"), "max_tokens") ?? 0);
}

/** Named sizes have at most one megapixel. */
function megapixelsIn(request: NativeRequest): number {
  return falMegapixels(pixelsIn(request));
}

/** 0 if the request leaves the size to the model, or names it by a word. */
function pixelsIn(request: NativeRequest): number {
  const size = request.member("image_size");
  const { width, height } = isRecord(size)
    ? size
    : { width: request.member("width"), height: request.member("height") };
  return (readNumber(width, "width") ?? 0) * (readNumber(height, "height") ?? 0);
}

/** Minimum images per second, for requests that count images and state no rate. */
const minFramesPerSecond = 8;

/** The most that the request says, for a model takes one name and overlooks the others. */
function secondsIn(request: NativeRequest): number {
  const said = falSecondsNames.map((name) => lengthIn(request, name, "s"));
  const rates = ["frames_per_second", "fps"].map((name) => lengthIn(request, name));
  const rate = Math.min(...rates.filter((each) => each > 0));
  const frames = lengthIn(request, "num_frames");
  const shown = frames / (Number.isFinite(rate) ? rate : minFramesPerSecond);
  return Math.max(...said, shown) || assumedSeconds;
}

/** `5`, `"5"` or `"5s"`; 0 if absent. Models also have special values such as `auto`. */
function lengthIn(request: NativeRequest, name: string, unit?: string): number {
  const value = request.member(name);
  const isWord = typeof value === "string" && /^[a-z]+$/i.test(value);
  return isWord ? 0 : (readNumber(value, name, unit) ?? 0);
}

/** `detail` is fal's own member; its client and others show `message`. */
function errorBody({ message, meaning }: GatewayError, requestId: string): JsonObject {
  return { detail: message, message, code: meaning.word, request_id: requestId };
}

/** `?fal_webhook=`. */
function readCallback({ query }: NativeRequest): NativeCallbackRequest {
  const url = query.get("fal_webhook") ?? "";
  return url === "" ? {} : { url };
}

export const falNative: NativeApi = {
  keyForms: [{ in: "authorization", scheme: "Key" }],
  requestHeaders: [
    "accept",
    "content-type",
    "x-fal-queue-priority",
    "x-fal-request-timeout",
    "x-fal-runner-hint",
    "x-fal-object-lifecycle",
    "x-fal-object-lifecycle-preference",
    "x-fal-store-io",
  ],
  responseHeaders: [
    "content-type",
    "retry-after",
    "x-fal-request-id",
    "x-fal-request-timeout-type",
    "x-fal-billable-units",
  ],
  urlMembers: ["status_url", "response_url", "cancel_url"],
  callback: { members: [], params: ["fal_webhook"], read: readCallback },
  errorBody,
  routes,
};
