/** A generation, as the body of generateContent. */
import type { Extra } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type Generation,
  ReasoningMode,
  type ReasoningOptions,
  type ResponseFormat,
  ResponseFormatType,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { invalid } from "../../core/validation.ts";
import type { EncodedRequest, RequestTarget } from "../codec.ts";
import { encodeContents } from "./encode-content.ts";
import { EncodeContext } from "./encode-context.ts";
import { encodeTools } from "./encode-tools.ts";
import type { GeminiRequest, GenerationConfig, ThinkingConfig } from "./wire.ts";
import { jsonBody, textsOf } from "../../wire/json/long-texts.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { parseRecord } from "../../wire/json/value.ts";

/** Implements {@link VendorCodec.encodeRequest}. Model and streaming are part of the address. */
export function encodeGeminiRequest(generation: Generation, target: RequestTarget): EncodedRequest {
  const { conversation, extras } = generation;
  if (conversation === undefined)
    throw invalid(undefined, "the messages are missing: send at least one");
  const context = new EncodeContext(target);
  checkExtras(extras);
  noteHints(generation, context);
  const { contents, system } = encodeContents(conversation.turns, context);
  const { choices: candidateCount = 1 } = target;
  const generationConfig = {
    ...encodeConfig(generation, context),
    ...(candidateCount > 1 && { candidateCount }),
  };
  const serviceTier = encodeTier(generation, context);
  const request: GeminiRequest = {
    ...(system.length > 0 && { systemInstruction: { parts: system } }),
    contents,
    ...encodeTools(conversation, context),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...(serviceTier && { serviceTier }),
    ...context.extras(extras),
  };
  return { ...jsonBody(request, textsOf(generation)), headers: {}, dropped: context.dropped };
}

/** Members of other styles that ask for another reply than Gemini would give without them. */
const askForMore = new Map<string, (json: string) => boolean>([
  ["n", (json) => Number(json) > 1],
  ["modalities", (json) => json !== '["text"]'],
  ["web_search_options", () => true],
  ["previous_response_id", () => true],
  ["conversation", () => true],
  ["prompt", () => true],
  ["background", (json) => json === "true"],
  ["container", () => true],
  ["mcp_servers", (json) => json !== "[]"],
]);

function checkExtras(extras: readonly Extra[]): void {
  for (const { name, json } of extras) {
    if (!askForMore.get(name)?.(json)) continue;
    throw invalid(name, `"${name}" is not supported by this model's vendor: leave it out`);
  }
}

function noteHints({ verbosity, endUser, cacheKey }: Generation, context: EncodeContext): void {
  if (verbosity !== "") context.drop("verbosity");
  if (endUser !== "") context.drop("end_user");
  if (cacheKey !== "") context.drop("cache_key");
}

/** Gemini's words for what others call by another; `auto` is what it does unasked. */
const tiers: ReadonlyMap<string, string> = new Map([
  ["auto", ""],
  ["default", "standard"],
  ["standard", "standard"],
  ["standard_only", "standard"],
  ["flex", "flex"],
  ["priority", "priority"],
]);

function encodeTier({ serviceTier }: Generation, context: EncodeContext): string {
  if (serviceTier === "") return "";
  const tier = tiers.get(serviceTier);
  if (tier === undefined) context.drop("service_tier");
  return tier ?? "";
}

/** The most stop sequences that Gemini takes. */
const stopMax = 5;

/** Implements {@link VendorCodec.sentStops}. */
export function geminiStops(stop: readonly string[]): readonly string[] {
  return stop.slice(0, stopMax);
}

/**
 * Writes the settings. @throws GatewayError INVALID_REQUEST if one cannot be carried nor left out
 */
function encodeConfig(generation: Generation, context: EncodeContext): GenerationConfig {
  const { maxOutputTokens, temperature, topP, topK, stop } = generation;
  const { presencePenalty, frequencyPenalty, responseFormat, reasoning } = generation;
  const sent = geminiStops(stop);
  const seed = encodeSeed(generation, context);
  return {
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK }),
    ...(sent.length > 0 && { stopSequences: sent }),
    ...(seed !== undefined && { seed }),
    ...(presencePenalty !== undefined && { presencePenalty }),
    ...(frequencyPenalty !== undefined && { frequencyPenalty }),
    ...(responseFormat && encodeFormat(responseFormat, context)),
    ...(reasoning && encodeReasoning(reasoning, context)),
  };
}

/** Gemini's seed has 32 bits. */
function encodeSeed({ seed }: Generation, context: EncodeContext): number | undefined {
  if (seed === undefined) return undefined;
  if (BigInt.asIntN(32, seed) === seed) return Number(seed);
  context.drop("seed");
  return undefined;
}

/** The name is a label; that the schema is followed is always so here. */
function encodeFormat(
  { type, description, schemaJson }: ResponseFormat,
  context: EncodeContext,
): Pick<GenerationConfig, "responseMimeType" | "responseJsonSchema"> {
  const responseMimeType = "application/json";
  if (type === ResponseFormatType.JSON_OBJECT) return { responseMimeType };
  if (type !== ResponseFormatType.JSON_SCHEMA) return {};
  if (parseRecord(schemaJson) === undefined) {
    throw invalid("response_format", "the schema of the response format must be a JSON object");
  }
  if (description !== "") context.drop("response_format.description");
  return { responseMimeType, responseJsonSchema: new JsonText(schemaJson) };
}

function encodeReasoning(
  reasoning: ReasoningOptions,
  context: EncodeContext,
): Pick<GenerationConfig, "thinkingConfig"> {
  const { thinking } = context.traits;
  if (thinking === undefined) {
    // A request not to think needs no setting for a model that does not think.
    if (!isOff(reasoning)) context.drop("reasoning");
    return {};
  }
  const amount = thinking === "level" ? level(reasoning, context) : budget(reasoning, context);
  const config = { ...amount, ...(isShown(reasoning) && { includeThoughts: true }) };
  return Object.keys(config).length === 0 ? {} : { thinkingConfig: config };
}

/**
 * Whether the request asks for thoughts: by a summary, or in a style that shows them by default.
 */
function isShown({ mode, summary }: ReasoningOptions): boolean {
  if (summary !== "") return summary !== "omitted";
  return mode === ReasoningMode.ADAPTIVE || mode === ReasoningMode.BUDGET;
}

function isOff({ mode, effort }: ReasoningOptions): boolean {
  return (
    mode === ReasoningMode.DISABLED || (mode === ReasoningMode.UNSPECIFIED && effort === "none")
  );
}

/**
 * From Gemini 3 on: a level, or a budget as before. It always thinks; the lowest level comes next
 * to not.
 */
function level(reasoning: ReasoningOptions, context: EncodeContext): ThinkingConfig {
  const { mode, effort, budgetTokens } = reasoning;
  const lowest = context.traits.isPro ? "LOW" : "MINIMAL";
  if (isOff(reasoning)) {
    context.drop(effort === "none" ? "reasoning.effort" : "reasoning.mode");
    return { thinkingLevel: lowest };
  }
  if (mode === ReasoningMode.BUDGET) {
    if (effort !== "") context.drop("reasoning.effort");
    return { thinkingBudget: budgetTokens };
  }
  switch (effort) {
    case "none":
    case "minimal":
      return { thinkingLevel: lowest };
    case "low":
      return { thinkingLevel: "LOW" };
    case "medium":
      return { thinkingLevel: "MEDIUM" };
    case "high":
    case "xhigh":
    case "max":
      return { thinkingLevel: "HIGH" };
    default:
      if (effort !== "") context.drop("reasoning.effort");
      return {};
  }
}

/** Google's own budgets for the efforts of other styles, in tokens. */
const budgets: ReadonlyMap<string, number> = new Map([
  ["none", 0],
  ["minimal", 1_024],
  ["low", 1_024],
  ["medium", 8_192],
  ["high", 24_576],
  ["xhigh", 24_576],
  ["max", 24_576],
]);

/** Minimum thinking budget of Gemini 2.5 Pro in tokens. */
const proBudgetMin = 128;

/** The model decides how much. */
const dynamicBudget = -1;

/** Gemini 2.5: a budget in tokens. */
function budget(reasoning: ReasoningOptions, context: EncodeContext): ThinkingConfig {
  const { mode, effort, budgetTokens } = reasoning;
  if (isOff(reasoning)) {
    if (!context.traits.isPro) return { thinkingBudget: 0 };
    context.drop(effort === "none" ? "reasoning.effort" : "reasoning.mode");
    return { thinkingBudget: proBudgetMin };
  }
  if (mode === ReasoningMode.BUDGET) {
    if (effort !== "") context.drop("reasoning.effort");
    return { thinkingBudget: budgetTokens };
  }
  const known = budgets.get(effort);
  if (known !== undefined) return { thinkingBudget: known };
  if (effort !== "") context.drop("reasoning.effort");
  return mode === ReasoningMode.ADAPTIVE ? { thinkingBudget: dynamicBudget } : {};
}
