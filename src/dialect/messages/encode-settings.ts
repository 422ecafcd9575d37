/**
 * Encodes sampling and reasoning settings, and refuses settings of other styles that have no
 * equivalent.
 */
import { type Extra, ToolChoiceMode } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type Generation,
  ReasoningMode,
  type ReasoningOptions,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { invalid } from "../../core/validation.ts";
import type { JsonBranch } from "../../wire/json/json-tree.ts";
import type { EncodeContext } from "./encode-context.ts";
import type { ModelTraits } from "./model-traits.ts";

/** Smallest `top_p` that the vendor accepts while thinking. */
const thinkingTopPMin = 0.95;

/** The sampling that a model accepts. */
interface SamplingModel {
  /** Whether it will think; it then accepts no temperature and no `top_k`. */
  readonly thinks: boolean;
  /** Whether it accepts any. */
  readonly takes: boolean;
}

/**
 * Encodes sampling members that the vendor accepts. A temperature above 1 becomes 1 and is reported
 * as dropped.
 */
export function encodeSampling(
  generation: Generation,
  model: SamplingModel,
  writer: EncodeContext,
): JsonBranch {
  dropUnknown(generation, writer);
  const stop = writer.isOwn ? generation.stop : messagesStops(generation.stop);
  const sampling = writer.isOwn ? ownSampling(generation) : fitting(generation, model, writer);
  if (Object.keys(sampling).length > 0) writer.needsOldVersion = true;
  return { ...sampling, ...(stop.length > 0 && { stop_sequences: stop }) };
}

function ownSampling({ temperature, topP, topK }: Generation): JsonBranch {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
  };
}

function fitting(
  generation: Generation,
  { thinks, takes }: SamplingModel,
  writer: EncodeContext,
): JsonBranch {
  if (!takes) {
    const { temperature = 1, topP = 1, topK } = generation;
    if (temperature !== 1) writer.drop("temperature");
    if (topP !== 1) writer.drop("top_p");
    if (topK !== undefined) writer.drop("top_k");
    return {};
  }
  const temperature = fittingTemperature(generation, thinks, writer);
  const topP = fittingTopP(generation, { thinks, hasTemperature: temperature !== undefined });
  if (topP === undefined && (generation.topP ?? 1) !== 1) writer.drop("top_p");
  const topK = thinks ? undefined : generation.topK;
  if (topK === undefined && generation.topK !== undefined) writer.drop("top_k");
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
  };
}

function fittingTemperature(
  { temperature }: Generation,
  thinks: boolean,
  writer: EncodeContext,
): number | undefined {
  if (temperature === undefined) return undefined;
  // 1 is the default; omitting it allows the newer API version.
  if (thinks && temperature === 1) return undefined;
  if (thinks || temperature > 1) writer.drop("temperature");
  return thinks ? undefined : Math.min(temperature, 1);
}

/** Models of this style refuse `top_p` together with a temperature. */
function fittingTopP(
  { topP }: Generation,
  { thinks, hasTemperature }: { thinks: boolean; hasTemperature: boolean },
): number | undefined {
  if (topP === undefined || hasTemperature || topP === 1) return undefined;
  return thinks && topP < thinkingTopPMin ? undefined : topP;
}

/** Implements {@link VendorCodec.sentStops}: white space alone is refused. */
export function messagesStops(stop: readonly string[]): readonly string[] {
  return stop.filter((text) => text.trim() !== "");
}

/** Reports settings without a member in this style. */
function dropUnknown(generation: Generation, writer: EncodeContext): void {
  const { seed, presencePenalty, frequencyPenalty, verbosity } = generation;
  if (seed !== undefined) writer.drop("seed");
  if (presencePenalty) writer.drop("presence_penalty");
  if (frequencyPenalty) writer.drop("frequency_penalty");
  if (verbosity !== "" && verbosity !== "medium") writer.drop("verbosity");
}

/** Members of other styles that change the request, with the values that are harmless. */
const unservable: readonly (readonly [name: string, harmless: RegExp])[] = [
  ["n", /^1$/],
  ["modalities", /^\["text"\]$/],
  ["audio", /^null$/],
  ["web_search_options", /^null$/],
  ["previous_response_id", /^null$/],
  ["conversation", /^null$/],
  ["prompt", /^null$/],
  ["background", /^false$/],
];

/** @throws GatewayError INVALID_REQUEST naming the member */
export function refuseForeignExtras(extras: readonly Extra[]): void {
  for (const { name, json } of extras) {
    const found = unservable.find(([each]) => each === name);
    if (found !== undefined && !found[1].test(json)) {
      throw invalid(name, `"${name}": ${json.slice(0, 40)} is not available for this model`);
    }
  }
}

/** Smallest budget that the vendor accepts, in tokens. */
const budgetTokensMin = 1024;

/** The encoded reasoning settings. */
interface EncodedReasoning {
  /** `thinking`; `undefined` for none. */
  readonly thinking: JsonBranch | undefined;
  /** `output_config.effort`; `undefined` for none. */
  readonly effort: string | undefined;
  /** Whether the model will think; it then accepts no sampling parameters. */
  readonly isOn: boolean;
}

/** Facts for {@link encodeReasoning} besides the options. */
interface ReasoningContext {
  readonly generation: Generation;
  /** The features of the model. */
  readonly traits: ModelTraits;
  /** The `max_tokens` of the request. */
  readonly maxTokens: number;
  /** Whether the conversation allows thinking: see {@link EncodedTurns}. */
  readonly canThink: boolean;
  readonly writer: EncodeContext;
}

/**
 * Drops and reports reasoning if the vendor would refuse the request: with a required tool, within
 * a turn whose reasoning did not come back, and for models without it.
 */
export function encodeReasoning(context: ReasoningContext): EncodedReasoning {
  const { generation, canThink, writer } = context;
  const { reasoning } = generation;
  if (reasoning === undefined) return { thinking: undefined, effort: undefined, isOn: false };
  if (writer.isOwn) return encodeOwn(reasoning);
  const effort = writeEffort(reasoning, context);
  const thinking = encodeThinking(reasoning, context);
  const isOn = thinking !== undefined && thinking["type"] !== "disabled";
  if (isOn && (!canThink || isForced(generation))) {
    writer.drop("reasoning");
    return { thinking: undefined, effort, isOn: false };
  }
  return { thinking, effort, isOn };
}

function isForced({ conversation }: Generation): boolean {
  const mode = conversation?.toolChoice?.mode;
  return mode === ToolChoiceMode.REQUIRED || mode === ToolChoiceMode.NAMED;
}

/** Restores the client's own settings. Effort alone does not request thinking in this style. */
function encodeOwn({ mode, effort, budgetTokens, summary }: ReasoningOptions): EncodedReasoning {
  const display = summary === "" ? {} : { display: summary };
  const thinking = ((): JsonBranch | undefined => {
    switch (mode) {
      case ReasoningMode.DISABLED:
        return { type: "disabled" };
      case ReasoningMode.ADAPTIVE:
        return { type: "adaptive", ...display };
      case ReasoningMode.BUDGET:
        return { type: "enabled", budget_tokens: budgetTokens, ...display };
      case ReasoningMode.UNSPECIFIED:
      default:
        return undefined;
    }
  })();
  const isOn = thinking !== undefined && mode !== ReasoningMode.DISABLED;
  return { thinking, effort: effort || undefined, isOn };
}

function isRest({ mode, effort }: ReasoningOptions): boolean {
  return (
    mode === ReasoningMode.DISABLED || (mode === ReasoningMode.UNSPECIFIED && effort === "none")
  );
}

/** The style's own words; `minimal` of other styles is the lowest. */
function writeEffort(reasoning: ReasoningOptions, { traits, writer }: ReasoningContext) {
  const { effort, mode } = reasoning;
  if (!traits.effort) return undefined;
  // Models that always think use the least this way.
  if (isRest(reasoning)) return traits.rest === undefined ? "low" : undefined;
  // A budget already limits thinking.
  if (effort === "" || effort === "none" || mode === ReasoningMode.BUDGET) return undefined;
  if (effort === "minimal") return "low";
  if (effort !== "xhigh" || traits.xhigh) return effort;
  writer.drop("reasoning.effort");
  return "high";
}

function encodeThinking(
  reasoning: ReasoningOptions,
  context: ReasoningContext,
): JsonBranch | undefined {
  const { mode, effort, summary } = reasoning;
  const { traits, writer } = context;
  const asks = mode !== ReasoningMode.UNSPECIFIED || effort !== "" || summary !== "";
  if (!asks) return undefined;
  if (isRest(reasoning)) return encodeRest(reasoning, context);
  if (!traits.thinks) {
    writer.drop("reasoning");
    return undefined;
  }
  if (mode === ReasoningMode.BUDGET && traits.budgets) return encodeBudget(reasoning, context);
  if (mode === ReasoningMode.BUDGET) writer.drop("reasoning.budget_tokens");
  if (traits.adaptive) return { type: "adaptive", ...writeDisplay(summary) };
  return encodeBudget(
    { ...reasoning, budgetTokens: budgets.get(effort) ?? budgetTokensDefault },
    context,
  );
}

/** Some models cannot disable thinking; the nearest setting is used and reported. */
function encodeRest({ effort }: ReasoningOptions, { traits, writer }: ReasoningContext) {
  if (!traits.thinks) return undefined;
  if (traits.rest !== "disabled") {
    writer.drop(effort === "none" ? "reasoning.effort" : "reasoning.mode");
  }
  return traits.rest && { type: traits.rest };
}

/** Budgets in tokens for models without efforts. */
const budgets: ReadonlyMap<string, number> = new Map([
  ["minimal", budgetTokensMin],
  ["low", budgetTokensMin],
  ["medium", 8_192],
  ["high", 24_576],
  ["xhigh", 24_576],
  ["max", 24_576],
]);

/** Budget if only a summary is requested. */
const budgetTokensDefault = 8_192;

/** Largest share of `max_tokens` for thinking; the rest is for the reply. */
const effortShareMax = 0.8;

/**
 * A budget below `max_tokens`. The budget is lowered rather than `max_tokens` raised, since that
 * limits the customer's cost. Where even the smallest budget does not fit, thinking is off.
 */
function encodeBudget(
  { mode, budgetTokens, summary }: ReasoningOptions,
  { maxTokens, writer }: ReasoningContext,
): JsonBranch | undefined {
  const isExact = mode === ReasoningMode.BUDGET;
  const most = isExact ? maxTokens - 1 : Math.floor(maxTokens * effortShareMax);
  if (most < budgetTokensMin) {
    writer.drop("reasoning");
    return undefined;
  }
  const budget_tokens = Math.max(budgetTokensMin, Math.min(budgetTokens, most));
  if (isExact && budget_tokens !== budgetTokens) writer.drop("reasoning.budget_tokens");
  return { type: "enabled", budget_tokens, ...writeDisplay(summary) };
}

/** The display of thinking; other styles request summaries in several lengths. */
function writeDisplay(summary: string): JsonBranch {
  if (summary === "") return {};
  return { display: summary === "omitted" ? summary : "summarized" };
}
