/** The settings of a generation as responses have them. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Generation,
  ReasoningMode,
  type ReasoningOptions,
  type ResponseFormat,
  ResponseFormatType,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import { strictFor } from "../tools/strict-schema.ts";
import type { EncodeContext } from "./encode-context.ts";

/** Writes `reasoning`; `undefined` if nothing is said of it. */
export function encodeReasoning(options: ReasoningOptions): JsonRecord | undefined {
  const effort = effortOf(options);
  const summary = summaryOf(options);
  if (effort === "" && summary === "") return undefined;
  return { ...(effort && { effort }), ...(summary && { summary }) };
}

/** Whether the request asks for reasoning. */
export function asksForReasoning(options: ReasoningOptions | undefined): boolean {
  return options !== undefined && effortOf(options) !== "none" && effortOf(options) !== "";
}

/** Up to these budgets, in tokens, the effort is low or medium. */
const lowBudgetMax = 2048;
const mediumBudgetMax = 8192;

function effortOf({ mode, effort, budgetTokens }: ReasoningOptions): string {
  switch (mode) {
    case ReasoningMode.DISABLED:
      return "none";
    case ReasoningMode.ADAPTIVE:
      return effort || "medium";
    case ReasoningMode.BUDGET:
      if (effort !== "") return effort;
      if (budgetTokens <= lowBudgetMax) return "low";
      return budgetTokens <= mediumBudgetMax ? "medium" : "high";
    case ReasoningMode.UNSPECIFIED:
    default:
      return effort;
  }
}

/** In messages, requested reasoning is shown by default. */
function summaryOf({ mode, summary }: ReasoningOptions): string {
  const isShown = mode === ReasoningMode.ADAPTIVE || mode === ReasoningMode.BUDGET;
  switch (summary) {
    case "omitted":
      return "";
    case "summarized":
      return "auto";
    default:
      return summary || (isShown ? "auto" : "");
  }
}

/** Writes `text`; `undefined` if nothing is said of it. */
export function encodeText(generation: Generation, context: EncodeContext): JsonRecord | undefined {
  const { responseFormat, verbosity } = generation;
  const format = responseFormat && encodeFormat(responseFormat, context);
  if (format === undefined && verbosity === "") return undefined;
  return { ...(format && { format }), ...(verbosity && { verbosity }) };
}

function encodeFormat(format: ResponseFormat, context: EncodeContext): JsonRecord | undefined {
  switch (format.type) {
    case ResponseFormatType.TEXT:
      return { type: "text" };
    case ResponseFormatType.JSON_OBJECT:
      return { type: "json_object" };
    case ResponseFormatType.JSON_SCHEMA: {
      const { name, description, schemaJson } = format;
      const schema = context.json(schemaJson, "response_format.schema_json");
      const { source, drop } = context;
      // In messages every schema is followed exactly.
      const requested = source === Dialect.MESSAGES ? true : format.strict;
      const strict = strictFor({ strict: requested, schemaJson, source }, () =>
        drop("response_format.strict"),
      );
      return {
        type: "json_schema",
        name: name || "reply",
        ...(description && { description }),
        schema,
        ...(strict !== undefined && { strict }),
      };
    }
    case ResponseFormatType.UNSPECIFIED:
    default:
      return undefined;
  }
}
