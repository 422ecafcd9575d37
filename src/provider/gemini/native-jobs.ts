/** Only Gemini: two kinds of jobs continue after the answer, videos and background interactions. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import { FeatureUse, refuseUnknown } from "../../dialect/features/billed-features.ts";
import { checkGeminiConfig, checkInteractionTools } from "../../dialect/gemini/guard.ts";
import { hasError } from "../../dialect/vendor-error.ts";
import { checkServiceTier } from "../../dialect/features/guard.ts";
import { ObjectScan, openBrace } from "../../wire/json/scan.ts";
import { parseRecord, protoCountAt, recordAt, type JsonRecord } from "../../wire/json/value.ts";
import { reportedUsage, tokensMax } from "../../dialect/features/usage.ts";
import { knownNames, unknownFigures } from "../../dialect/features/usage-members.ts";
import { numberMax, invalidNumber } from "../native-http.ts";
import type {
  NativeModelAt,
  NativeRequest,
  NativeRoute,
  NativeTask,
  NativeMeter,
} from "../native.ts";
import { faultText } from "../task-http.ts";
import { VendorReplyError, type TaskUpdate, type TaskUnits, type TaskTokens } from "../task.ts";
import { defaultVideoSeconds } from "./params.ts";
import { operationUpdate } from "./tasks.ts";

/** A model in a path: `models/<name>`. Google's names need no escapes. */
export const modelPath = "/v1(?:beta)?/models/(?<model>[\\w.@+-]{1,200}(?:/[\\w.@+-]{1,200})*)";

/** Google keeps results for two days. */
const retentionMs = 48 * 60 * 60 * 1_000;

const operationForm = /^(?:models\/[\w.@+-]{1,200}\/)?operations\/[\w-]{1,200}$/;

const operations: NativeTask = {
  collection: "operations",
  idOf: ({ name }) => (typeof name === "string" && operationForm.test(name) ? name : undefined),
  path: (id) => `/v1beta/${id}`,
  statusOf: ({ done, error }) => {
    if (done !== true) return "running";
    return error === undefined ? "done" : "error";
  },
  readUpdate: operationUpdate,
  creates: (operation) => filesIn(operation),
  retentionMs: retentionMs,
};

const interactions: NativeTask = {
  collection: "interactions",
  idOf: ({ id }) => (typeof id === "string" && /^[\w.-]{1,256}$/.test(id) ? id : undefined),
  path: (id) => `/v1beta/interactions/${id}`,
  cancel: { method: "POST", path: (id) => `/v1beta/interactions/${id}/cancel` },
  statusOf: ({ status }) => textOf(status),
  readUpdate: interactionUpdate,
  retentionMs: retentionMs,
};

const named: NativeModelAt = { in: "body", members: ["model", "agent"], prefix: "models/" };
const idPath = "(?<id>[\\w.-]{1,256})";
const interactionId = ({ groups }: NativeRequest): string => groups["id"] ?? "";
const isStreamed = ({ query }: NativeRequest): boolean => query.get("stream") === "true";
const types = [ModelType.TEXT, ModelType.IMAGE];

/**
 * Reads a flag. Google may accept strings too, so anything but a boolean is refused: it could mean
 * different things here and there.
 */
function isRequested(request: NativeRequest, name: string): boolean {
  const value = request.member(name) ?? false;
  if (typeof value === "boolean") return value;
  const text = `"${name}" must be true or false`;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: name });
}

/** The routes of jobs. */
export const geminiJobs: readonly NativeRoute[] = [
  {
    kind: "submit",
    method: "POST",
    path: new RegExp(`^${modelPath}:predictLongRunning$`),
    model: { in: "path", group: "model" },
    types: [ModelType.VIDEO],
    units: videoUnits,
    task: operations,
  },
  {
    kind: "poll",
    method: "GET",
    path: /^\/v1(?:beta)?\/(?<id>(?:models\/[\w.@+-]{1,200}\/)?operations\/[\w-]{1,200})$/,
    id: interactionId,
    task: operations,
  },
  {
    kind: "submit",
    method: "POST",
    path: /^\/v1(?:beta)?\/interactions$/,
    when: (request) => isRequested(request, "background") && !isRequested(request, "stream"),
    model: named,
    types,
    units: interactionUnits,
    task: interactions,
  },
  {
    kind: "call",
    method: "POST",
    path: /^\/v1(?:beta)?\/interactions$/,
    model: named,
    types,
    limits: (request, model) => {
      checkInteraction(request, model.type === ModelType.IMAGE);
      return {
        maxOutputTokens: requestedOutputTokens(request),
        ...(model.type === ModelType.IMAGE && { images: 1 }),
      };
    },
    reply: (request) => (isRequested(request, "stream") ? "events" : "whole"),
    meter: () => new GeminiInteractionMeter(),
    creates: ({ id, interaction }) => {
      const made = id ?? objectOf(interaction)["id"];
      return typeof made === "string" ? [`interactions/${made}`] : [];
    },
  },
  {
    kind: "pass",
    method: "GET",
    path: new RegExp(`^/v1(?:beta)?/interactions/${idPath}$`),
    when: isStreamed,
    ownedName: (request) => `interactions/${interactionId(request)}`,
  },
  {
    kind: "poll",
    method: "GET",
    path: new RegExp(`^/v1(?:beta)?/interactions/${idPath}$`),
    id: interactionId,
    task: interactions,
  },
  {
    kind: "cancel",
    method: "POST",
    path: new RegExp(`^/v1(?:beta)?/interactions/${idPath}/cancel$`),
    id: interactionId,
    task: interactions,
  },
  {
    kind: "pass",
    method: "DELETE",
    path: new RegExp(`^/v1(?:beta)?/interactions/${idPath}$`),
    ownedName: (request) => `interactions/${interactionId(request)}`,
  },
];

/** Each instance is one video, or as many as requested. */
function videoUnits(
  request: NativeRequest,
  { minSeconds = minVideoSeconds }: ModelConfig,
): TaskUnits {
  checkServiceTier(request.member("serviceTier", "service_tier"));
  const parameters = objectOf(request.member("parameters"));
  const instances = request.member("instances");
  const videos = Array.isArray(instances) ? Math.max(1, instances.length) : 1;
  const samples = maxOf(parameters, "sampleCount", "sample_count", "numberOfVideos") ?? 1;
  const seconds = maxOf(parameters, "durationSeconds", "duration_seconds") ?? defaultVideoSeconds;
  return { seconds: videos * Math.max(1, samples) * Math.max(seconds, minSeconds) };
}

/** Google refuses shorter videos. */
const minVideoSeconds = 4;

/** Output token limit if neither request nor configuration has one. */
const outputTokensMax = 65_536;

function interactionUnits(
  request: NativeRequest,
  { type, maxOutputTokens }: ModelConfig,
): TaskUnits {
  checkInteraction(request, type === ModelType.IMAGE);
  return {
    inputTokens: request.inputTokens,
    outputTokens: requestedOutputTokens(request) ?? (maxOutputTokens || outputTokensMax),
    ...(type === ModelType.IMAGE && { images: 1 }),
  };
}

/** Refuses what Google bills beyond tokens. */
function checkInteraction(request: NativeRequest, isImageModel: boolean): void {
  if (request.mentions("cachedContent", "cached_content").length > 0) {
    throw invalid("cached_content", '"cached_content" is for generateContent: leave it out');
  }
  if (request.member("environment") != null) {
    throw refuseUnknown("environment", "a machine of the vendor");
  }
  checkInteractionTools(request.member("tools"));
  const use = new FeatureUse({});
  for (const name of ["response_modalities", "responseModalities"]) {
    checkGeminiConfig({ [name]: request.member(name) }, use, isImageModel);
  }
  checkServiceTier(request.member("service_tier", "serviceTier"));
}

function requestedOutputTokens(request: NativeRequest): number | undefined {
  const config = objectOf(request.member("generation_config", "generationConfig"));
  return maxOf(config, "max_output_tokens", "maxOutputTokens");
}

/** Reads the state of an interaction. @throws VendorReplyError */
function interactionUpdate(interaction: JsonObject): TaskUpdate {
  const status = textOf(interaction["status"]);
  switch (status) {
    case "queued":
    case "in_progress":
    case "requires_continuation":
      return { status: "running" };
    // The model's turn is complete; the caller replies with a new interaction.
    case "requires_action":
    case "completed":
    case "incomplete": {
      const usage = interactionTokens(objectOf(interaction["usage"]));
      const text = interactionText(interaction);
      return { status: "completed", outcome: { files: [], text, ...(usage && { usage }) } };
    }
    case "failed":
    case "budget_exceeded": {
      const { message } = objectOf(interaction["error"]);
      const said = textOf(message) || status;
      const error = { code: "upstream_error", message: faultText("upstream_error", said) } as const;
      return { status: "failed", error };
    }
    case "cancelled": {
      const usage = interactionTokens(objectOf(interaction["usage"]));
      const isTaken = usage !== undefined && usage.inputTokens + usage.outputTokens > 0;
      return { status: "cancelled", ...(isTaken && { reportedCost: { usage } }) };
    }
    default:
      throw new VendorReplyError(200, `reported the unknown status ${status}`);
  }
}

/** The names of the video files in an operation. */
function filesIn(value: JsonValue): readonly string[] {
  if (typeof value === "string") {
    const [, name] = /\/(files\/[a-z0-9-]+)(?::download)?(?:\?.*)?$/.exec(value) ?? [];
    return name === undefined ? [] : [name];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((each) => filesIn(each));
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

/** Returns the value if it is an object, else an empty object. */
export function objectOf(value: unknown): JsonObject {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : {};
}

/**
 * The largest of a figure's values under several names; `undefined` if it is absent or 0, which
 * Google's messages treat alike. The hold must cover the vendor's own default.
 *
 * @throws GatewayError INVALID_REQUEST if a value is no number
 */
export function maxOf(object: JsonObject, ...names: readonly string[]): number | undefined {
  const most = Math.max(...names.map((name) => figureOf(object[name], name)));
  return most === 0 ? undefined : Math.ceil(most);
}

/**
 * Google accepts numbers as strings, such as `1e2`. @throws GatewayError INVALID_REQUEST if the
 * value is no number
 */
function figureOf(value: JsonValue | undefined, name: string): number {
  if (value === undefined || value === null || value === "") return 0;
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number === "number" && number >= 0 && number <= numberMax) return number;
  throw invalidNumber(name);
}

/** Meters an interaction, whole or streamed. The last usage counts. */
class GeminiInteractionMeter implements NativeMeter {
  usage: Usage | undefined;
  textBytes = 0;
  images = 0;
  isDone = false;
  isFailed = false;
  /** The text that had come with {@link usage}. */
  #countedTextBytes = 0;
  readonly #scan = new ObjectScan();
  readonly #inner = new ObjectScan();

  get uncountedTextBytes(): number {
    return this.usage === undefined ? 0 : this.textBytes - this.#countedTextBytes;
  }

  read(bytes: Buffer, start: number, end: number): void {
    const scan = this.#scan.scan(bytes, start, end);
    this.isFailed ||= hasError(scan) || isFailedStatus(scan);
    if (scan.find("event_type") < 0) {
      const interaction = parseRecord(bytes.toString("utf8", start, end));
      if (interaction === undefined) return;
      this.textBytes += Buffer.byteLength(interactionText(interaction as JsonObject));
      this.#readUsage(recordAt(interaction, "usage"));
      return;
    }
    const delta = scan.find("delta");
    if (delta >= 0) {
      const inner = this.#inner.scan(bytes, scan.start(delta), scan.end(delta));
      this.textBytes += inner.stringBytes("text") + inner.stringBytes("arguments");
    }
    if (scan.kind("interaction") !== openBrace) return;
    const interaction = scan.find("interaction");
    const inner = this.#inner.scan(bytes, scan.start(interaction), scan.end(interaction));
    this.isFailed ||= isFailedStatus(inner) || hasError(inner);
    this.#readUsage(recordAt(parseRecord(scan.json("interaction")) ?? {}, "usage"));
    this.isDone ||= scan.is("event_type", "interaction.completed");
  }

  stop(usage: Usage | undefined): string {
    const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
    return JSON.stringify({
      event_type: "interaction.completed",
      interaction: {
        status: "incomplete",
        usage: {
          total_input_tokens: inputTokens,
          total_output_tokens: outputTokens,
          total_tokens: inputTokens + outputTokens,
        },
      },
    });
  }

  #readUsage(usage: JsonRecord | undefined): void {
    if (usage === undefined) return;
    const reported = interactionTokens(usage);
    if (reported === undefined) return;
    const { inputTokens: input, cachedInputTokens: cached, outputTokens: output } = reported;
    const { reasoningTokens: reasoning } = reported;
    const unknown = unknownFigures(usage, knownMembers);
    const counted = { input, cached, written: 0, output, reasoning };
    this.usage = reportedUsage({ ...counted, unknown }) ?? this.usage;
    this.#countedTextBytes = this.textBytes;
  }
}

/** Whether an interaction, or an event about its status, says that it failed. */
function isFailedStatus(scan: ObjectScan): boolean {
  return scan.is("status", "failed");
}

/**
 * Members of the usage of interactions. Figures of Google's tools are missing, because requests for
 * these tools are refused.
 */
const knownMembers = {
  ...knownNames("total_input_tokens", "total_cached_tokens", "total_output_tokens"),
  ...knownNames("total_tool_use_tokens", "total_thought_tokens", "total_tokens"),
  ...knownNames("initial_input_tokens", "input_tokens_by_modality", "output_tokens_by_modality"),
  ...knownNames("cached_tokens_by_modality", "tool_use_tokens_by_modality"),
};

/** Thinking counts as output, and tool results as input. */
export function interactionTokens(usage: JsonRecord): TaskTokens | undefined {
  const input = protoCountAt(usage, "total_input_tokens");
  if (input === undefined) return undefined;
  const thought = protoCountAt(usage, "total_thought_tokens") ?? 0;
  return {
    inputTokens: Math.min(input + (protoCountAt(usage, "total_tool_use_tokens") ?? 0), tokensMax),
    cachedInputTokens: protoCountAt(usage, "total_cached_tokens") ?? 0,
    outputTokens: Math.min((protoCountAt(usage, "total_output_tokens") ?? 0) + thought, tokensMax),
    reasoningTokens: thought,
  };
}

/** The output texts, without thinking. */
function interactionText({ outputs, steps }: JsonObject): string {
  return [outputs, steps].flatMap((each) => textsIn(each ?? null)).join("");
}

function textsIn(value: JsonValue): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => textsIn(each));
  if (typeof value !== "object" || value === null) return [];
  const { type, text, content } = value;
  if (type === "thought" || type === "user_input") return [];
  return [...(typeof text === "string" ? [text] : []), ...textsIn(content ?? null)];
}
