/** DashScope's own interface: what exists of it under its prefix, and what of that costs money. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { isRecord } from "../dialect/json.ts";
import type { GatewayError } from "../errors.ts";
import { DashscopeMeter } from "./dashscope-meter.ts";
import type { NativeApi, NativeLimits, NativeRequest, NativeRoute } from "./native.ts";

const inModel = { in: "body", members: ["model"] } as const;
const services = "/api/v1/services";

const routes: readonly NativeRoute[] = [
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
    types: [ModelType.TEXT],
    limits: () => ({ maxOutputTokens: 0 }),
    reply: () => "whole",
    meter,
    isInputCharged: true,
  },
];

/** Both headers ask for events, says Alibaba; its clients send both. */
function reply({ headers }: NativeRequest): "whole" | "events" {
  const isWanted = headers["x-dashscope-sse"]?.toLowerCase() === "enable";
  return isWanted || (headers["accept"] ?? "").includes("text/event-stream") ? "events" : "whole";
}

function meter({ request }: { readonly request: NativeRequest }): DashscopeMeter {
  return new DashscopeMeter(parametersOf(request)["incremental_output"] === true);
}

/** `max_tokens` limits the answer only: what the model thinks before has a limit of its own. */
function textLimits(request: NativeRequest, model: ModelConfig): NativeLimits {
  const parameters = parametersOf(request);
  const most = countOf(parameters["max_tokens"]);
  const choices = countOf(parameters["n"]) ?? 1;
  if (most === undefined) return { maxOutputTokens: undefined, choices };
  const isThinking = parameters["enable_thinking"] === true;
  const budget = countOf(parameters["thinking_budget"]) ?? model.maxOutputTokens;
  return { maxOutputTokens: isThinking ? most + budget : most, choices };
}

function imageLimits(request: NativeRequest): NativeLimits {
  return { maxOutputTokens: 0, images: countOf(parametersOf(request)["n"]) ?? 1 };
}

/** The parameters of a request; empty: it has none. */
export function parametersOf(request: NativeRequest): JsonObject {
  const parameters = request.member("parameters");
  return isRecord(parameters) ? parameters : {};
}

/** A whole number from 1 on; `undefined`: it is none. */
export function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}

/** Its form, which has no place for the status. */
function errorBody({ message, meaning }: GatewayError, requestId: string): JsonObject {
  return { code: meaning.word, message, request_id: requestId };
}

export const dashscopeNative: NativeApi = {
  // Its clients send `Authorization: Bearer`.
  keyForms: [],
  requestHeaders: [
    "accept",
    "content-type",
    "x-dashscope-sse",
    "x-dashscope-async",
    "x-dashscope-datainspection",
  ],
  responseHeaders: ["content-type", "retry-after"],
  // Its bodies name no address of its own, and files lie elsewhere, under signed addresses.
  urlMembers: [],
  errorBody,
  routes,
};
