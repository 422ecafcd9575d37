/** How much to think, for a vendor. */
import {
  type Generation,
  ReasoningMode,
  type ReasoningOptions,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { ToolChoiceMode } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonBranch } from "./json-text.ts";
import type { ModelTraits } from "./model-traits.ts";
import type { RequestWriter } from "./request-writer.ts";

/** The smallest budget that the vendor takes. */
const budgetTokensMin = 1024;

/** What the style knows of reasoning. */
export interface EncodedReasoning {
  /** `thinking`; `undefined`: not said. */
  readonly thinking: JsonBranch | undefined;
  /** `output_config.effort`; `undefined`: not said. */
  readonly effort: string | undefined;
  /** Whether the model will think: it takes no sampling parameters then. */
  readonly isOn: boolean;
}

/** What {@link encodeReasoning} goes by beside the options themselves. */
export interface ReasoningContext {
  readonly generation: Generation;
  /** What the model takes. */
  readonly traits: ModelTraits;
  /** The `max_tokens` of the request. */
  readonly maxTokens: number;
  /** Whether the conversation allows it: see {@link EncodedTurns}. */
  readonly canThink: boolean;
  readonly writer: RequestWriter;
}

/**
 * Reasoning is dropped, and reported, where the vendor would refuse the request for it: beside a tool that
 * must be called, in the middle of a turn whose reasoning did not come back, and at a model that has none.
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

/** As it came. Effort alone is no word about thinking here. */
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

/** The style's own words, and `minimal`, which is the least of others. */
function writeEffort(reasoning: ReasoningOptions, { traits, writer }: ReasoningContext) {
  const { effort, mode } = reasoning;
  if (!traits.effort) return undefined;
  // What thinks in any case thinks least so.
  if (isRest(reasoning)) return traits.rest === undefined ? "low" : undefined;
  // A budget says how much already.
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

/** Some models cannot be told not to think: the nearest is reported. */
function encodeRest({ effort }: ReasoningOptions, { traits, writer }: ReasoningContext) {
  if (!traits.thinks) return undefined;
  if (traits.rest !== "disabled") {
    writer.drop(effort === "none" ? "reasoning.effort" : "reasoning.mode");
  }
  return traits.rest && { type: traits.rest };
}

/** What stands for an effort at models that know none, in tokens. */
const budgets: ReadonlyMap<string, number> = new Map([
  ["minimal", budgetTokensMin],
  ["low", budgetTokensMin],
  ["medium", 8_192],
  ["high", 24_576],
  ["xhigh", 24_576],
  ["max", 24_576],
]);

/** Where only a summary is asked for. */
const budgetTokensDefault = 8_192;

/** How much of `max_tokens` an effort may take: the rest is for the reply. */
const effortShareMax = 0.8;

/**
 * A budget below `max_tokens`. It is lowered rather than `max_tokens` raised: that is the most that the
 * customer pays for. Where even the smallest does not fit, there is no reasoning.
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

/** What to show: other styles ask for summaries in several lengths. */
function writeDisplay(summary: string): JsonBranch {
  if (summary === "") return {};
  return { display: summary === "omitted" ? summary : "summarized" };
}
