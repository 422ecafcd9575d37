/** A request for a vendor. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Generation,
  ReasoningMode,
  type ReasoningOptions,
  type ResponseFormat,
  ResponseFormatType,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { encodeMessages } from "./encode-content.ts";
import { EncodeContext } from "./encode-context.ts";
import { encodeTools } from "./encode-tools.ts";
import type { EncodedRequest, RequestTarget } from "../codec.ts";
import { jsonBody, textsOf } from "../../wire/json/long-texts.ts";
import { strictFor } from "../tools/strict-schema.ts";

/** The most stop texts that vendors of this style take. */
const stopMax = 4;

/** Implements {@link VendorCodec.sentStops}. */
export function chatStops(stop: readonly string[]): readonly string[] {
  return stop.slice(0, stopMax);
}

/** Implements {@link VendorCodec.encodeRequest}. */
export function encodeChatRequest(generation: Generation, target: RequestTarget): EncodedRequest {
  const context = new EncodeContext(target.sourceDialect, target.quirks);
  const { conversation } = generation;
  const body: Record<string, unknown> = {
    model: target.model,
    messages: encodeMessages(conversation?.turns ?? [], context),
    ...(conversation && encodeTools(conversation, context)),
    ...encodeSampling(generation, target, context),
    ...encodeEffort(generation.reasoning, context),
    ...(generation.responseFormat && encodeFormat(generation.responseFormat, context)),
    ...encodeLabels(generation),
    ...(target.stream && { stream: true, stream_options: { include_usage: true } }),
  };
  context.writeExtras(body, generation.extras);
  return { ...jsonBody(body, textsOf(generation)), headers: {}, dropped: context.dropped };
}

function encodeSampling(
  generation: Generation,
  { limitParameter = "max_completion_tokens" }: RequestTarget,
  context: EncodeContext,
): object {
  const { maxOutputTokens, temperature, topP, topK, stop, seed } = generation;
  const { presencePenalty, frequencyPenalty } = generation;
  const sent = context.isOwn ? stop : chatStops(stop);
  if (topK !== undefined) context.drop("top_k");
  return {
    ...(maxOutputTokens !== undefined && { [limitParameter]: maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(sent.length > 0 && { stop: sent }),
    ...(seed !== undefined && { seed: seedNumber(seed) }),
    ...(presencePenalty !== undefined && { presence_penalty: presencePenalty }),
    ...(frequencyPenalty !== undefined && { frequency_penalty: frequencyPenalty }),
  };
}

/**
 * Keeps all digits of the seed, which a JavaScript number cannot represent. The types lack the
 * function.
 */
function seedNumber(seed: bigint): unknown {
  const { rawJSON } = JSON as unknown as { rawJSON: (json: string) => unknown };
  return rawJSON(seed.toString());
}

/** Budgets above these numbers of tokens are more than low, and more than medium. */
const lowBudgetMax = 1024;

const mediumBudgetMax = 8192;

function encodeEffort(reasoning: ReasoningOptions | undefined, context: EncodeContext): object {
  if (reasoning === undefined) return {};
  if (reasoning.summary !== "" && reasoning.summary !== "auto") context.drop("reasoning.summary");
  const effort = reasoning.effort || effortOf(reasoning);
  // Many models refuse the effort `none`; thinking nevertheless costs little.
  if (effort === "" && reasoning.mode === ReasoningMode.DISABLED) context.drop("reasoning.mode");
  return effort === "" ? {} : { reasoning_effort: effort };
}

function effortOf({ mode, budgetTokens }: ReasoningOptions): string {
  switch (mode) {
    case ReasoningMode.ADAPTIVE:
      return "medium";
    case ReasoningMode.BUDGET:
      if (budgetTokens <= lowBudgetMax) return "low";
      return budgetTokens <= mediumBudgetMax ? "medium" : "high";
    case ReasoningMode.UNSPECIFIED:
    case ReasoningMode.DISABLED:
    default:
      return "";
  }
}

function encodeFormat(format: ResponseFormat, context: EncodeContext): object {
  switch (format.type) {
    case ResponseFormatType.TEXT:
      return { response_format: { type: "text" } };
    case ResponseFormatType.JSON_OBJECT:
      return { response_format: { type: "json_object" } };
    case ResponseFormatType.JSON_SCHEMA: {
      const { description, schemaJson } = format;
      const { source } = context;
      // In messages every schema is followed exactly.
      const requested = source === Dialect.MESSAGES ? true : format.strict;
      const strict = strictFor({ strict: requested, schemaJson, source }, () =>
        context.drop("response_format.strict"),
      );
      const json_schema = {
        // Not every style names its schema; here the name is required.
        name: format.name || "reply",
        ...(description && { description }),
        ...(schemaJson && {
          schema: context.json(schemaJson, "response_format.schema_json"),
        }),
        ...(strict !== undefined && { strict }),
      };
      return { response_format: { type: "json_schema", json_schema } };
    }
    case ResponseFormatType.UNSPECIFIED:
    default:
      return {};
  }
}

function encodeLabels({ verbosity, endUser, serviceTier, cacheKey, extras }: Generation): object {
  // Every vendor accepts the deprecated `user`. The newer name is needed only if the request has
  // both.
  const userName = extras.some(({ name }) => name === "user") ? "safety_identifier" : "user";
  return {
    ...(verbosity && { verbosity }),
    ...(endUser && { [userName]: endUser }),
    ...(serviceTier && { service_tier: serviceTier }),
    ...(cacheKey && { prompt_cache_key: cacheKey }),
  };
}
