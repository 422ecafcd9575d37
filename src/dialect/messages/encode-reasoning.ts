/** How much to think, for a vendor. */
import {
  type Generation,
  ReasoningMode,
  type ReasoningOptions,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { ToolChoiceMode } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonBranch } from "./json-text.ts";
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
  /** The `max_tokens` of the request. */
  readonly maxTokens: number;
  /** Whether the conversation allows it: see {@link EncodedTurns}. */
  readonly canThink: boolean;
  readonly writer: RequestWriter;
}

/**
 * Reasoning is dropped, and reported, where the vendor would refuse the request for it: beside a tool that
 * must be called, and in the middle of a turn whose reasoning did not come back.
 */
export function encodeReasoning(context: ReasoningContext): EncodedReasoning {
  const { generation, canThink, writer } = context;
  const { reasoning } = generation;
  if (reasoning === undefined) return { thinking: undefined, effort: undefined, isOn: false };
  const effort = writeEffort(reasoning, writer);
  const thinking = encodeThinking(reasoning, context);
  const isOn = thinking !== undefined && thinking["type"] !== "disabled";
  if (isOn && !writer.isOwn && (!canThink || isForced(generation))) {
    writer.drop("reasoning");
    return { thinking: undefined, effort, isOn: false };
  }
  return { thinking, effort, isOn };
}

function isForced({ conversation }: Generation): boolean {
  const mode = conversation?.toolChoice?.mode;
  return mode === ToolChoiceMode.REQUIRED || mode === ToolChoiceMode.NAMED;
}

/** The style's own words, and `minimal`, which is the least of others. */
function writeEffort({ effort, mode }: ReasoningOptions, writer: RequestWriter) {
  if (effort === "" || (effort === "none" && !writer.isOwn)) return undefined;
  // A budget says how much already, and older models know nothing else.
  if (mode === ReasoningMode.BUDGET && !writer.isOwn) return undefined;
  return effort === "minimal" ? "low" : effort;
}

function encodeThinking(
  reasoning: ReasoningOptions,
  context: ReasoningContext,
): JsonBranch | undefined {
  const { writer } = context;
  const display = writeDisplay(reasoning.summary, writer);
  switch (reasoning.mode) {
    case ReasoningMode.DISABLED:
      return { type: "disabled" };
    case ReasoningMode.ADAPTIVE:
      return { type: "adaptive", ...display };
    case ReasoningMode.BUDGET: {
      const budget = fittingBudget(reasoning, context);
      return budget === undefined
        ? undefined
        : { type: "enabled", budget_tokens: budget, ...display };
    }
    case ReasoningMode.UNSPECIFIED:
    default:
      // In this style effort alone is no word about thinking; in others it is all there is.
      if (writer.isOwn || (reasoning.effort === "" && reasoning.summary === "")) return undefined;
      if (reasoning.effort === "none") return { type: "disabled" };
      return { type: "adaptive", ...display };
  }
}

/**
 * A budget below `max_tokens`. It is lowered rather than `max_tokens` raised: that is the most that the
 * customer pays for. Where even the smallest does not fit, there is no reasoning.
 */
function fittingBudget(
  { budgetTokens }: ReasoningOptions,
  { maxTokens, writer }: ReasoningContext,
): number | undefined {
  if (writer.isOwn) return budgetTokens;
  const budget = Math.max(budgetTokensMin, Math.min(budgetTokens, maxTokens - 1));
  if (budget >= maxTokens) {
    writer.drop("reasoning");
    return undefined;
  }
  if (budget !== budgetTokens) writer.drop("reasoning.budget_tokens");
  return budget;
}

/** What to show: other styles ask for summaries in several lengths. */
function writeDisplay(summary: string, writer: RequestWriter): JsonBranch {
  if (summary === "") return {};
  if (writer.isOwn || summary === "omitted") return { display: summary };
  return { display: "summarized" };
}
