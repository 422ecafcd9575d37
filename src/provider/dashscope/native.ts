/** DashScope's native API: the routes under its prefix, and what they cost. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import {
  checkModalities,
  type FeatureUnit,
  FeatureUse,
  isSwitchedOn,
  refuseUnknown,
  refuseUnpriced,
  toolTypeCheck,
} from "../../dialect/features/billed-features.ts";
import { refuseStored } from "../../dialect/features/guard.ts";
import { isRecord, recordsAt } from "../../wire/json/value.ts";
import { invalid } from "../../core/validation.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import {
  dashscopeRetentionMs,
  dashscopeUpdate,
  dashscopeStatus,
  dashscopeTaskId,
} from "./tasks.ts";
import { mediaInput, mediaParameters, textInput, textParameters } from "./members.ts";
import { assumedSeconds } from "./params.ts";
import { readNumber } from "../native-http.ts";
import type { NativeApi, NativeLimits, NativeRequest, NativeRoute, NativeTask } from "../native.ts";
import type { TaskUnits } from "../task.ts";
import { DashscopeMeter } from "./meter.ts";

const inModel = { in: "body", members: ["model"] } as const;
const services = "/api/v1/services";
const idForm = "(?<id>[\\w-]{1,200})";
const idOf = ({ groups }: NativeRequest): string => groups["id"] ?? "";

const tasks: NativeTask = {
  collection: "tasks",
  idOf: dashscopeTaskId,
  path: (id) => `/api/v1/tasks/${id}`,
  cancel: { method: "POST", path: (id) => `/api/v1/tasks/${id}/cancel` },
  statusOf: (json, before) => dashscopeStatus(json) || before,
  readUpdate: dashscopeUpdate,
  retentionMs: dashscopeRetentionMs,
};

/**
 * Written by the gateway: another value in the client's header would be refused as if the gateway's
 * key were wrong, or make a task of a call.
 */
const asTask = { "x-dashscope-async": "enable" } as const;

const routes: readonly NativeRoute[] = [
  {
    kind: "submit",
    method: "POST",
    path: new RegExp(
      `^${services}/aigc/(?:text2image|image2image)/image-synthesis$|^${services}/aigc/image-generation/generation$`,
    ),
    model: inModel,
    types: [ModelType.IMAGE],
    units: imageUnits,
    headers: asTask,
    task: tasks,
  },
  {
    kind: "submit",
    method: "POST",
    path: new RegExp(`^${services}/aigc/(?:video-generation|image2video)/video-synthesis$`),
    model: inModel,
    types: [ModelType.VIDEO],
    units: (request) => ({ seconds: countOf(asynchronous(request), "duration") ?? assumedSeconds }),
    assumedSeconds: assumedSeconds,
    headers: asTask,
    task: tasks,
  },
  {
    kind: "poll",
    method: "GET",
    path: new RegExp(`^/api/v1/tasks/${idForm}$`),
    id: idOf,
    task: tasks,
  },
  {
    kind: "cancel",
    method: "POST",
    path: new RegExp(`^/api/v1/tasks/${idForm}/cancel$`),
    id: idOf,
    task: tasks,
  },
  {
    kind: "call",
    method: "POST",
    path: new RegExp(`^${services}/aigc/text-generation/generation$`),
    model: inModel,
    types: [ModelType.TEXT],
    limits: textLimits,
    reply,
    meter,
  },
  {
    kind: "submit",
    method: "POST",
    path: new RegExp(`^${services}/aigc/multimodal-generation/generation$`),
    when: isAsynchronous,
    model: inModel,
    types: [ModelType.IMAGE],
    units: imageUnits,
    headers: asTask,
    task: tasks,
  },
  {
    kind: "call",
    method: "POST",
    path: new RegExp(`^${services}/aigc/multimodal-generation/generation$`),
    model: inModel,
    types: [ModelType.TEXT, ModelType.IMAGE],
    limits: (request, model) =>
      model.type === ModelType.IMAGE ? imageLimits(request) : textLimits(request, model),
    reply,
    meter,
  },
  {
    kind: "call",
    method: "POST",
    path: new RegExp(`^${services}/embeddings/text-embedding/text-embedding$`),
    model: inModel,
    types: [ModelType.TEXT, ModelType.EMBEDDING],
    limits: embedLimits,
    reply: () => "whole",
    meter,
    isInputCharged: true,
  },
];

/** Alibaba documents both headers for streaming; its clients send both. */
function reply({ headers }: NativeRequest): "whole" | "events" {
  const isWanted = headers["x-dashscope-sse"]?.toLowerCase() === "enable";
  return isWanted || (headers["accept"] ?? "").includes("text/event-stream") ? "events" : "whole";
}

function meter({ request }: { readonly request: NativeRequest }): DashscopeMeter {
  return new DashscopeMeter(parametersOf(request)["incremental_output"] === true);
}

function imageUnits(request: NativeRequest): TaskUnits {
  return { images: countOf(asynchronous(request), "n") ?? imagesDefault };
}

/** Default number of images of Alibaba's models. */
const imagesDefault = 4;

/** The parameters of a job. @throws GatewayError if a synchronous reply is requested */
function asynchronous(request: NativeRequest): JsonObject {
  checkMediaRequest(request);
  if (isAsynchronous(request)) return parametersOf(request);
  const text = "This is answered as a task only: send the header X-DashScope-Async: enable";
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text);
}

/** The parameters of a synchronous request. @throws GatewayError if a task is requested */
function synchronous(request: NativeRequest): JsonObject {
  if (!isAsynchronous(request)) return parametersOf(request);
  const text = "This is answered at once only: leave the header X-DashScope-Async out";
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text);
}

function isAsynchronous({ headers }: NativeRequest): boolean {
  return headers["x-dashscope-async"]?.trim().toLowerCase() === "enable";
}

/** `max_tokens` limits the answer only; thinking has a separate limit. */
function textLimits(request: NativeRequest, model: ModelConfig): NativeLimits {
  const parameters = synchronous(request);
  refuseFiles(request);
  checkMedia(request);
  // Its replies report none of these apart, so no price unit can count them.
  const use = new FeatureUse({});
  checkMembers(inputOf(request), "input", textInput, use);
  const { tools, modalities, ...others } = parameters;
  checkModalities(modalities, "parameters.modalities", use);
  for (const [at, tool] of recordsAt({ tools }, "tools").entries()) {
    checkToolType(tool, `parameters.tools[${at}]`, use);
  }
  checkMembers(others, "parameters", textParameters, use);
  const most = countOf(parameters, "max_tokens");
  const choices = countOf(parameters, "n") ?? 1;
  if (most === undefined) return { maxOutputTokens: undefined, choices };
  const isThinking = parameters["enable_thinking"] === true;
  const budget = countOf(parameters, "thinking_budget") ?? model.maxOutputTokens;
  return { maxOutputTokens: isThinking ? most + budget : most, choices };
}

const checkToolType = toolTypeCheck({ free: ["function"], billed: [], refused: [] });

/**
 * Checks each member of a table that is not free, unless it says no. @throws GatewayError
 * INVALID_REQUEST
 */
function checkMembers(
  record: JsonObject,
  path: string,
  table: Readonly<Record<string, "free" | "refused" | FeatureUnit>>,
  use: FeatureUse,
): void {
  for (const [name, of] of Object.entries(table)) {
    if (of === "free" || !isSwitchedOn(record[name])) continue;
    const where = `${path}.${name}`;
    const asked = `"${name}"`;
    if (of === "refused") throw refuseUnknown(where, asked);
    use.use(of, where, asked);
  }
}

/** Checks a request for images or videos. @throws GatewayError INVALID_REQUEST */
function checkMediaRequest(request: NativeRequest): void {
  const use = new FeatureUse({});
  checkMembers(inputOf(request), "input", mediaInput, use);
  checkMembers(parametersOf(request), "parameters", mediaParameters, use);
}

/**
 * Refuses references to files of the Alibaba account, regardless of their uploader: texts that
 * begin with their URL scheme.
 */
function refuseFiles(request: NativeRequest): void {
  if (!request.mentions("content", "text").some((text) => /^\s*fileid:/i.test(text))) return;
  throw refuseStored("input.messages", "send the text itself");
}

/**
 * Refuses audio, whose tokens replies do not report apart, and videos as lists of frames, whose
 * tokens have no bound.
 */
function checkMedia(request: NativeRequest): void {
  for (const message of recordsAt(inputOf(request), "messages")) {
    for (const part of recordsAt(message, "content")) {
      if (part["audio"] != null) throw refuseUnpriced("input.messages", "audio", "audio_input");
      if (part["video"] == null || typeof part["video"] === "string") continue;
      const text = '"video" must be one address: the tokens of a list of frames have no bound';
      throw invalid("input.messages", text);
    }
  }
}

function embedLimits(request: NativeRequest): NativeLimits {
  synchronous(request);
  return { maxOutputTokens: 0 };
}

function imageLimits(request: NativeRequest): NativeLimits {
  checkMediaRequest(request);
  return { maxOutputTokens: 0, images: countOf(synchronous(request), "n") ?? 1 };
}

/** The input of a request; empty if it has none. */
function inputOf(request: NativeRequest): JsonObject {
  const input = request.member("input");
  return isRecord(input) ? input : {};
}

/** The parameters of a request; empty if it has none. */
function parametersOf(request: NativeRequest): JsonObject {
  const parameters = request.member("parameters");
  return isRecord(parameters) ? parameters : {};
}

/**
 * A number from 1; `undefined` means Alibaba's default. @throws GatewayError if it is no such
 * number
 */
function countOf(parameters: JsonObject, name: string): number | undefined {
  const count = Math.ceil(readNumber(parameters[name], name) ?? 0);
  return count > 0 ? count : undefined;
}

/** Alibaba's error form, which has no place for the status. */
function errorBody({ message, meaning }: GatewayError, requestId: string): JsonObject {
  return { code: meaning.word, message, request_id: requestId };
}

export const dashscopeNative: NativeApi = {
  // Its clients send `Authorization: Bearer`.
  keyForms: [],
  // Not `x-dashscope-datainspection`: Alibaba bills that check.
  requestHeaders: ["accept", "content-type", "x-dashscope-sse"],
  responseHeaders: ["content-type", "retry-after"],
  // Its bodies contain no URL of the API itself, and files have signed URLs elsewhere.
  urlMembers: [],
  errorBody,
  routes,
};
