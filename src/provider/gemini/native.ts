/** Gemini's own interface: what exists of it under its prefix, and what of that costs money. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { pricedUnits } from "../../config/price.ts";
import { FeatureUse } from "../../dialect/features/billed-features.ts";
import {
  checkGeminiConfig,
  checkGeminiTools,
  refuseGeminiMembers,
} from "../../dialect/gemini/guard.ts";
import { checkServiceTier } from "../../dialect/features/guard.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { geminiCacheRoutes, geminiCaches, isMissingCache } from "./native-caches.ts";
import { checkAudio, geminiFiles, geminiReferences } from "./native-files.ts";
import { geminiJobs, modelPath, maxOf, objectOf } from "./native-jobs.ts";
import type {
  NativeApi,
  NativeCallbackRequest,
  NativeLimits,
  NativeListedModel,
  NativeRequest,
  NativeRoute,
} from "../native.ts";
import { GeminiMeter } from "./meter.ts";

const inModel = { in: "path", group: "model" } as const;
const textAndImages = [ModelType.TEXT, ModelType.IMAGE] as const;

/**
 * Maximum tokens of an image if the model's configuration has no limit: the longest reply that
 * Google lists for an image model.
 */
const imageTokensMax = 32_768;

const routes: readonly NativeRoute[] = [
  {
    kind: "call",
    method: "POST",
    path: new RegExp(`^${modelPath}:generateContent$`),
    model: inModel,
    types: textAndImages,
    limits: generateLimits,
    reply: () => "whole",
    meter: () => new GeminiMeter(),
  },
  {
    kind: "call",
    method: "POST",
    path: new RegExp(`^${modelPath}:streamGenerateContent$`),
    model: inModel,
    types: textAndImages,
    limits: generateLimits,
    reply: ({ query }) => (query.getAll("alt").includes("sse") ? "events" : "array"),
    meter: () => new GeminiMeter(),
  },
  {
    kind: "pass",
    method: "POST",
    path: new RegExp(`^${modelPath}:countTokens$`),
    model: inModel,
  },
  {
    kind: "call",
    method: "POST",
    path: new RegExp(`^${modelPath}:(?:embedContent|batchEmbedContents)$`),
    model: inModel,
    types: [ModelType.TEXT, ModelType.EMBEDDING],
    limits: embedLimits,
    reply: () => "whole",
  },
];

/** These follow the routes of jobs, whose names begin with the name of a model. */
const models: readonly NativeRoute[] = [
  { kind: "models", method: "GET", path: /^\/v1(?:beta)?\/models$/, body: modelList },
  { kind: "pass", method: "GET", path: new RegExp(`^${modelPath}$`), model: inModel },
];

/** Routes of jobs, files, caches and models. */
const allRoutes: readonly NativeRoute[] = [
  ...routes,
  ...geminiJobs,
  ...geminiFiles,
  ...geminiCacheRoutes,
  ...models,
];

/** All models in one page, as Google describes them. */
function modelList(listed: readonly NativeListedModel[]): string {
  const described = listed.map(({ name, model }) => ({
    name: `models/${name}`,
    displayName: model.name,
    ...(model.maxOutputTokens > 0 && { outputTokenLimit: model.maxOutputTokens }),
    supportedGenerationMethods: methods.get(model.type) ?? [],
  }));
  return JSON.stringify({ models: described });
}

/** The methods of a model, by its type. */
const methods: ReadonlyMap<ModelType, readonly string[]> = new Map([
  [ModelType.TEXT, ["generateContent", "countTokens"]],
  [ModelType.IMAGE, ["generateContent", "countTokens"]],
  [ModelType.VIDEO, ["predictLongRunning"]],
  [ModelType.EMBEDDING, ["embedContent", "batchEmbedContents"]],
]);

/** `generationConfig` in either spelling: Google takes both. */
function generateLimits(request: NativeRequest, model: ModelConfig, nowMs: number): NativeLimits {
  const config = objectOf(request.member("generationConfig", "generation_config"));
  const use = new FeatureUse({
    hasPrice: pricedUnits(model, nowMs),
    maxToolCalls: model.maxToolCalls,
  });
  refuseGeminiMembers((name) => request.member(name) ?? config[name]);
  checkGeminiTools(request.member("tools"), use);
  checkGeminiConfig(config, use, model.type === ModelType.IMAGE);
  checkAudio(request, use);
  checkServiceTier(request.member("serviceTier", "service_tier"), use);
  const most = maxOf(config, "maxOutputTokens", "max_output_tokens");
  const choices = maxOf(config, "candidateCount", "candidate_count") ?? 1;
  const { features } = use;
  if (model.type !== ModelType.IMAGE) return { maxOutputTokens: most, choices, features };
  const maxOutputTokens = most ?? (model.maxOutputTokens || imageTokensMax);
  return { maxOutputTokens, choices, images: 1, features };
}

/** Each request of a batch names its model again: it must be the one that is priced. */
function embedLimits(request: NativeRequest): NativeLimits {
  checkServiceTier(request.member("serviceTier", "service_tier"));
  const { model = "" } = request.groups;
  const other = request
    .mentions("model")
    .find((each) => each !== model && each !== `models/${model}`);
  if (other === undefined) return { maxOutputTokens: 0 };
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `"model": name \`models/${model}\` as the path does`,
    {
      param: "model",
    },
  );
}

/** Google's words for our codes; else its word for the status. */
const statusWords: ReadonlyMap<number, string> = new Map([
  [400, "INVALID_ARGUMENT"],
  [401, "UNAUTHENTICATED"],
  [402, "FAILED_PRECONDITION"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [409, "ABORTED"],
  [413, "INVALID_ARGUMENT"],
  [429, "RESOURCE_EXHAUSTED"],
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"],
]);

/** `google.rpc.Status`, with our code as the reason of its details. */
function errorBody(error: GatewayError, requestId: string): JsonObject {
  const { status, message, meaning, retryAfterSeconds, code } = error;
  const reason = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: meaning.word,
    metadata: { request_id: requestId },
  };
  const isLater = retryAfterSeconds !== undefined && code !== ErrorCode.INTERNAL_ERROR;
  const later = {
    "@type": "type.googleapis.com/google.rpc.RetryInfo",
    retryDelay: `${retryAfterSeconds}s`,
  };
  const details = isLater ? [reason, later] : [reason];
  return {
    error: { code: status, message, status: statusWords.get(status) ?? "INTERNAL", details },
  };
}

export const geminiNative: NativeApi = {
  keyForms: [
    { in: "header", name: "x-goog-api-key" },
    { in: "query", name: "key" },
  ],
  requestHeaders: [
    "accept",
    "content-type",
    "range",
    "x-goog-api-client",
    "x-server-timeout",
    "x-goog-upload-*",
  ],
  responseHeaders: [
    "content-type",
    "retry-after",
    "content-range",
    "accept-ranges",
    "x-goog-upload-*",
  ],
  urlHeaders: ["x-goog-upload-url"],
  urlMembers: ["uri", "fileUri", "downloadUri"],
  callback: { members: ["webhook_config", "webhookConfig"], params: [], read: readCallback },
  references: geminiReferences,
  caches: geminiCaches,
  isMissingObject: isMissingCache,
  errorBody,
  routes: allRoutes,
};

/** `webhook_config` of interactions: the first of its addresses. */
function readCallback(request: NativeRequest): NativeCallbackRequest {
  const { uris } = objectOf(request.member("webhook_config", "webhookConfig"));
  const [url] = Array.isArray(uris) ? uris : [];
  return typeof url === "string" ? { url } : {};
}
