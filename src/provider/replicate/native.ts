/** Replicate's own interface: what exists of it under its prefix, and what of that costs money. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import { readNumber } from "../native-http.ts";
import type {
  NativeApi,
  NativeBriefJob,
  NativeCallbackRequest,
  NativeListedModel,
  NativeModelAt,
  NativeRequest,
  NativeRoute,
  NativeTask,
} from "../native.ts";
import { assumedSeconds, fileIn } from "./params.ts";
import { predictionUpdate } from "./tasks.ts";
import type { TaskUnits } from "../task.ts";

const modelPath = "/v1/models/(?<model>[\\w.-]{1,100}/[\\w.-]{1,100})";

const idForm = "(?<id>[\\w-]{1,200})";

const inModel = { in: "path", group: "model" } as const;

const inVersion: NativeModelAt = {
  in: "body",
  members: ["version"],
  version: {
    pattern: /^(?:(?<owner>[\w.-]+\/[\w.-]+):)?(?<version>[0-9a-f]{64})$/,
    pathOf: (model, version) => `/v1/models/${model}/versions/${version}`,
  },
};

const types = [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO];

const idOf = ({ groups }: NativeRequest): string => groups["id"] ?? "";

/** Replicate deletes what a prediction made an hour after its end; one may run for a day. */
const retentionMs = 24 * 60 * 60 * 1_000;

const predictions: NativeTask = {
  collection: "predictions",
  idOf: ({ id }) => (typeof id === "string" && /^[\w-]{1,200}$/.test(id) ? id : undefined),
  path: (id) => `/v1/predictions/${id}`,
  cancel: { method: "POST", path: (id) => `/v1/predictions/${id}/cancel` },
  statusOf: ({ status }) => (typeof status === "string" ? status : ""),
  readUpdate: predictionUpdate,
  retentionMs: retentionMs,
};

const routes: readonly NativeRoute[] = [
  {
    kind: "submit",
    method: "POST",
    path: new RegExp(`^${modelPath}/predictions$`),
    model: inModel,
    types,
    units,
    assumedSeconds: assumedSeconds,
    task: predictions,
  },
  {
    kind: "submit",
    method: "POST",
    path: /^\/v1\/predictions$/,
    model: inVersion,
    types,
    units,
    assumedSeconds: assumedSeconds,
    task: predictions,
  },
  {
    kind: "list",
    method: "GET",
    path: /^\/v1\/predictions$/,
    task: predictions,
    pageSize: 100,
    cursor: "cursor",
    body: (jobs, { previous = null, next = null }) =>
      `{"previous":${JSON.stringify(previous)},"next":${JSON.stringify(next)},"results":[${jobs.join(",")}]}`,
    brief: briefPrediction,
  },
  {
    kind: "poll",
    method: "GET",
    path: new RegExp(`^/v1/predictions/${idForm}$`),
    id: idOf,
    task: predictions,
  },
  {
    kind: "cancel",
    method: "POST",
    path: new RegExp(`^/v1/predictions/${idForm}/cancel$`),
    id: idOf,
    task: predictions,
  },
  { kind: "models", method: "GET", path: /^\/v1\/models$/, body: modelList },
  {
    kind: "pass",
    method: "GET",
    path: new RegExp(`^${modelPath}(?:/versions(?:/[0-9a-f]{64})?)?$`),
    model: { ...inModel, isAnyVersion: true },
  },
  {
    kind: "pass",
    method: "POST",
    path: /^\/v1\/files$/,
    isUpload: true,
    creates: ({ json }) => (typeof json?.["id"] === "string" ? [`files/${json["id"]}`] : []),
  },
  {
    kind: "pass",
    method: "GET",
    path: new RegExp(`^/v1/files/${idForm}$`),
    ownedName: (request) => `files/${idOf(request)}`,
  },
  {
    kind: "pass",
    method: "DELETE",
    path: new RegExp(`^/v1/files/${idForm}$`),
    ownedName: (request) => `files/${idOf(request)}`,
  },
];

/** A prediction without what made it long: its input, output and logs. */
function briefPrediction({ id, status, model, baseUrl }: NativeBriefJob): JsonObject {
  const [, name = "", version = ""] = /^([^:]*):?(.*)$/.exec(model) ?? [];
  const get = `${baseUrl}/v1/predictions/${id}`;
  return { id, status, model: name, version, urls: { get, cancel: `${get}/cancel` } };
}

/** Members by which models accept a number of images, and a length. */
const countNames = [
  "num_outputs",
  "num_images",
  "number_of_images",
  "num_samples",
  "batch_size",
  "max_images",
];

const lengthNames = ["duration", "seconds", "length", "video_length", "audio_length"];

/** Every model has its own inputs, so every known multiplier is held for. */
function units(request: NativeRequest, model: ModelConfig): TaskUnits {
  const { type, prices, maxOutputTokens } = model;
  const input = request.member("input");
  if (!isObject(input)) throw invalid("input", '"input" must be an object');
  if (type === ModelType.IMAGE) {
    const counts = countNames.map((name) => numberIn(input, name) ?? 1);
    return { images: Math.ceil(counts.reduce((all, count) => all * Math.max(1, count), 1)) };
  }
  const { inputTokens } = request;
  if (type === ModelType.TEXT) {
    const said = limitNames.map((name) => numberIn(input, name) ?? 0);
    return { inputTokens, outputTokens: Math.ceil(Math.max(maxOutputTokens, ...said)) };
  }
  const isTimed = prices.some(({ price }) => price.second !== undefined);
  if (!isTimed) return { inputTokens };
  const said = Math.max(...lengthNames.map((name) => numberIn(input, name) ?? 0));
  return { seconds: Math.max(said, framesIn(input)) || assumedSeconds, inputTokens };
}

/**
 * Members by which models accept a maximum of output tokens. A model uses one of them and ignores
 * the others.
 */
const limitNames = ["max_tokens", "max_new_tokens", "max_completion_tokens", "max_output_tokens"];

/** A page of models, in the form of Replicate's own list. */
function modelList(models: readonly NativeListedModel[]): string {
  const results = models.flatMap(({ name, model }) => {
    const [, owner, short] = /^([\w.-]+)\/([\w.-]+)(?::|$)/.exec(name) ?? [];
    if (owner === undefined) return [];
    const url = `https://replicate.com/${owner}/${short}`;
    const described = { url, owner, name: short, description: model.name, visibility: "public" };
    return [{ ...described, ...unknownMembers }];
  });
  return JSON.stringify({ previous: null, next: null, results });
}

/** Members of a listed model that only Replicate can fill: `GET` of the model returns them. */
const unknownMembers = {
  github_url: null,
  paper_url: null,
  license_url: null,
  run_count: 0,
  cover_image_url: null,
  default_example: null,
  latest_version: null,
};

/** Minimum images per second, for requests that count images and state no rate. */
const minFramesPerSecond = 8;

/**
 * Converts a number of frames to seconds; 0 if the request counts none. A model uses one of the
 * names and ignores the others.
 */
function framesIn(input: JsonObject): number {
  const frames = ["num_frames", "frames", "max_frames"].map((name) => numberIn(input, name) ?? 0);
  const rates = ["fps", "frames_per_second", "frame_rate"].map(
    (name) => numberIn(input, name) ?? 0,
  );
  const rate = Math.min(...rates.filter((each) => each > 0));
  return Math.max(...frames) / (Number.isFinite(rate) ? rate : minFramesPerSecond);
}

/**
 * Some models accept a length as a text, such as `5s`, or special words. @throws GatewayError if
 * the value is not a number
 */
function numberIn(input: JsonObject, name: string): number | undefined {
  const value = input[name];
  if (typeof value === "string" && /^[a-z]*$/i.test(value)) return undefined;
  return readNumber(value, `input.${name}`, "s");
}

/** Reads `webhook` and its event filter. */
function readCallback(request: NativeRequest): NativeCallbackRequest {
  const url = request.member("webhook") ?? null;
  const filter = request.member("webhook_events_filter") ?? null;
  if (url !== null && typeof url !== "string") throw invalid("webhook", '"webhook" must be a URL');
  if (filter !== null && !isFilter(filter)) {
    const text = `"webhook_events_filter" must be a list of ${[...eventWords].join(", ")}`;
    throw invalid("webhook_events_filter", text);
  }
  const isNarrow = Array.isArray(filter) && !filter.some((each) => each !== "completed");
  return { ...(url !== null && { url }), wantsProgress: !isNarrow };
}

/** Events of a prediction, in Replicate's words. */
const eventWords: ReadonlySet<string> = new Set(["start", "output", "logs", "completed"]);

function isFilter(filter: JsonValue): boolean {
  return (
    Array.isArray(filter) &&
    filter.every((each) => typeof each === "string" && eventWords.has(each))
  );
}

/** Files that were uploaded, wherever in the input their addresses stand. */
function references(request: NativeRequest): readonly string[] {
  return request.mentions().flatMap((text) => {
    const id = fileIn(text)?.id;
    return id === undefined ? [] : [`files/${id}`];
  });
}

/** Returns an error in the form of Replicate, with the gateway's code in addition. */
function errorBody(error: GatewayError, requestId: string): JsonObject {
  const { status, message, meaning } = error;
  const title = titles.get(error.code) ?? "Request failed";
  return { title, detail: message, status, code: meaning.word, request_id: requestId };
}

const titles = new Map<ErrorCode, string>([
  [ErrorCode.UNAUTHENTICATED, "Unauthenticated"],
  [ErrorCode.INSUFFICIENT_BALANCE, "Insufficient balance"],
  [ErrorCode.ACCESS_DENIED, "Permission denied"],
  [ErrorCode.INVALID_REQUEST, "Invalid request"],
  [ErrorCode.NOT_FOUND, "Not found"],
  [ErrorCode.MODEL_NOT_FOUND, "Model not found"],
  [ErrorCode.RATE_LIMIT_EXCEEDED, "Request was throttled"],
]);

/** The table. */
export const replicateNative: NativeApi = {
  keyForms: [{ in: "authorization", scheme: "Token" }],
  requestHeaders: ["accept", "content-type", "prefer", "cancel-after", "last-event-id", "range"],
  responseHeaders: ["content-type", "retry-after", "content-range", "accept-ranges"],
  urlMembers: ["get", "cancel", "next", "previous", "url"],
  linkMembers: ["stream"],
  callback: {
    members: ["webhook", "webhook_events_filter"],
    params: [],
    read: readCallback,
  },
  references,
  errorBody,
  routes,
};

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
