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
  NativeMeter,
} from "../native.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { GeminiToolCount, UsageReader } from "../../dialect/gemini/usage.ts";
import { parseRecord } from "../../wire/json/value.ts";
import { ObjectScan, openBrace, quote } from "../../wire/json/scan.ts";
import { EventTemplate } from "../../wire/json/event-template.ts";

const inModel = { in: "path", group: "model" } as const;
const textAndImages = [ModelType.TEXT, ModelType.IMAGE] as const;

/** What a picture can come to in tokens where the model's configuration does not say: the longest reply that
 * Google lists for a model that draws. */
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

/** Behind those of jobs, whose names begin with a model's. */
const models: readonly NativeRoute[] = [
  { kind: "models", method: "GET", path: /^\/v1(?:beta)?\/models$/, body: modelList },
  { kind: "pass", method: "GET", path: new RegExp(`^${modelPath}$`), model: inModel },
];

/** The tables of what goes on after its answer, of files, of caches, and of models. */
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

// What a reply of generateContent costs, read from its bytes as they come.

/** Each chunk's counts hold for the whole reply: the largest ones count. */
export class GeminiMeter implements NativeMeter {
  textBytes = 0;
  images = 0;
  isDone = false;
  readonly #chunk = new ObjectScan();
  readonly #candidate = new ObjectScan();
  readonly #content = new ObjectScan();
  readonly #part = new ObjectScan();
  /** As it was written: most are overtaken before anybody asks. */
  #counts = "";
  /** The text that had come with the counts; `undefined`: none have come. */
  #countedTextBytes: number | undefined;
  readonly #usage = new UsageReader();
  readonly #tools = new GeminiToolCount();
  #template: EventTemplate | undefined;
  /** Whether the last chunk was one text and its counts, and where that text stands. */
  #isPlain = false;
  #texts = 0;
  #textStart = 0;
  #textEnd = 0;

  get usage(): Usage | undefined {
    this.#readCounts();
    return this.#usage.usage;
  }

  get uncountedTextBytes(): number {
    return this.textBytes - (this.#countedTextBytes ?? this.textBytes);
  }

  read(bytes: Buffer, start: number, end: number): void {
    const chunk = this.#chunk.scan(bytes, start, end);
    this.#template = undefined;
    this.#texts = 0;
    if (chunk.kind("promptFeedback") === openBrace) {
      this.isDone ||= chunk.json("promptFeedback").includes('"blockReason"');
    }
    for (const { start: from, end: to } of chunk.elements("candidates")) {
      const candidate = this.#candidate.scan(bytes, from, to);
      if (candidate.kind("finishReason") === quote) this.isDone = true;
      this.#readTools(candidate);
      const content = candidate.find("content");
      if (content < 0) continue;
      this.#content.scan(bytes, candidate.start(content), candidate.end(content));
      for (const part of this.#content.elements("parts")) this.#readPart(bytes, part);
    }
    if (chunk.kind("usageMetadata") === openBrace) {
      this.#readCounts();
      this.#counts = chunk.json("usageMetadata");
      this.#countedTextBytes = this.textBytes;
    }
    this.#isPlain = this.#texts === 1 && !this.isDone;
  }

  learn(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): void {
    const at = this.#chunk.find("usageMetadata");
    const counts = { start: this.#chunk.start(at) - start, end: this.#chunk.end(at) - start };
    const text = { start: this.#textStart - start, end: this.#textEnd - start };
    if (!this.#isPlain || at < 0 || text.end > counts.start) return;
    this.#template = new EventTemplate({ event: bytes.subarray(start, end), text, counts });
  }

  skim(bytes: Buffer, start: number, textBytesMax = Number.POSITIVE_INFINITY): number {
    const run = this.#template?.pass(bytes, start, textBytesMax - this.textBytes);
    if (run === undefined || run.end === start) return start;
    // The template takes no counts that fall.
    this.#counts = bytes.toString("latin1", run.countsStart, run.countsEnd);
    this.textBytes += run.textBytes;
    this.#countedTextBytes = this.textBytes;
    return run.end;
  }

  stop(usage: Usage | undefined): string {
    const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
    return JSON.stringify({
      candidates: [{ content: { parts: [], role: "model" }, finishReason: "MAX_TOKENS", index: 0 }],
      usageMetadata: {
        promptTokenCount: inputTokens,
        candidatesTokenCount: outputTokens,
        totalTokenCount: inputTokens + outputTokens,
      },
    });
  }

  #readCounts(): void {
    const usageMetadata = this.#counts === "" ? undefined : parseRecord(this.#counts);
    this.#counts = "";
    this.#usage.read({ usageMetadata }, this.#tools.calls);
  }

  #readTools(candidate: ObjectScan): void {
    for (const name of ["groundingMetadata", "urlContextMetadata"]) {
      if (candidate.kind(name) === openBrace) this.#tools.read({ [name]: candidate.value(name) });
    }
  }

  /** Pictures of its thoughts are no result. */
  #readPart(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): void {
    const part = this.#part.scan(bytes, start, end);
    this.textBytes += part.stringBytes("text");
    const text = part.find("text");
    this.#texts += text >= 0 && part.size === 1 && bytes[part.start(text)] === quote ? 1 : 2;
    this.#textStart = part.start(text) + 1;
    this.#textEnd = part.end(text) - 1;
    for (const name of ["functionCall", "executableCode", "codeExecutionResult"]) {
      if (part.kind(name) !== openBrace) continue;
      this.textBytes += part.json(name).length;
      if (name === "executableCode") this.#tools.addRun();
    }
    if (part.kind("inlineData") === openBrace && part.json("thought") !== "true") this.images++;
  }
}
