/** The figures of a call's consumption, both ways. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { knownNames, unknownFigures } from "../features/usage-members.ts";
import { type JsonRecord, recordAt, recordsAt } from "../../wire/json/value.ts";
import {
  firstCount,
  grownUsage,
  largestCount,
  reportedUsage,
  sumOfTokens,
  wholeTotals,
} from "../features/usage.ts";

/**
 * The usage of a chunk or a whole reply, in any place where vendors write it: Moonshot in the
 * choice, Groq in `x_groq`.
 */
export function chunkUsage(chunk: JsonRecord): Usage | undefined {
  let usage: Usage | undefined;
  const places = [chunk, recordsAt(chunk, "choices")[0], recordAt(chunk, "x_groq")];
  const { service_tier: tier } = chunk;
  for (const place of places) {
    if (place !== undefined) usage = grownUsage(usage, decodeUsage(recordAt(place, "usage"), tier));
  }
  return usage;
}

/**
 * Reads the vendor's figures; undefined unless both totals are whole numbers of at least 0.
 *
 * @param serviceTier the vendor's word next to them. Default: none
 */
export function decodeUsage(
  wire: JsonRecord | undefined,
  serviceTier?: unknown,
): Usage | undefined {
  if (wire === undefined) return undefined;
  const read = recordAt(wire, "prompt_tokens_details");
  const made = recordAt(wire, "completion_tokens_details");
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = wire;
  const beside = researchTokens(wire);
  // Moonshot and Z.AI report it next to the details, DeepSeek under its own name, proxies of
  // Anthropic under Anthropic's name.
  const cached = firstCount(
    read?.["cached_tokens"],
    read?.["cache_read_input_tokens"],
    wire["cached_tokens"],
    wire["prompt_cache_hit_tokens"],
    wire["cache_read_input_tokens"],
  );
  const written = firstCount(
    read?.["cache_write_tokens"],
    read?.["cached_creation_tokens"],
    read?.["cache_creation_tokens"],
    read?.["cache_creation_input_tokens"],
    wire["cache_creation_input_tokens"],
  );
  const totals = wholeTotals({
    input: prompt,
    output: completion,
    total: beside === undefined ? total : undefined,
    cached,
    written,
    ofAnthropic: [wire["cache_read_input_tokens"], wire["cache_creation_input_tokens"]],
  });
  const named = largestCount(made?.["reasoning_tokens"], wire["thinking_tokens"], totals.hidden);
  return reportedUsage({
    input: sumOfTokens(totals.input, beside?.cited),
    cached,
    written,
    halfDayWritten: recordAt(read ?? {}, "cache_write_tokens_details")?.["ttl_12h_tokens"],
    heard: read?.["audio_tokens"],
    output: sumOfTokens(totals.output, beside?.reasoning),
    reasoning: beside?.reasoning ?? named,
    spoken: made?.["audio_tokens"],
    drawn: made?.["image_tokens"],
    rejected: made?.["rejected_prediction_tokens"],
    serviceTier,
    unknown: unknownFigures(wire, knownMembers),
    // OpenRouter and Perplexity.
    webSearches:
      recordAt(wire, "server_tool_use")?.["web_search_requests"] ?? wire["num_search_queries"],
  });
}

/** The members of the usage of OpenAI, and of vendors that speak its style. */
const knownMembers = {
  ...knownNames(
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "input_tokens",
    "output_tokens",
  ),
  ...knownNames("cached_tokens", "prompt_cache_hit_tokens", "prompt_cache_miss_tokens"),
  ...knownNames("cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"),
  ...knownNames("claude_cache_creation_5_m_tokens", "claude_cache_creation_1_h_tokens"),
  ...knownNames("reasoning_tokens", "thinking_tokens", "citation_tokens"),
  ...knownNames("num_search_queries", "num_sources_used"),
  // Figures of OpenRouter, xAI, Azure and Google about the call that are not consumption.
  ...knownNames("cost_in_usd_ticks", "latency_checkpoint", "extra_properties"),
  server_tool_use: knownNames("web_search_requests"),
  prompt_tokens_details: {
    ...knownNames("cached_tokens", "cache_write_tokens", "cache_write_tokens_details"),
    ...knownNames("cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation"),
    ...knownNames("cached_creation_tokens", "cache_creation_tokens"),
    ...knownNames("text_tokens", "audio_tokens", "image_tokens", "video_tokens"),
  },
  completion_tokens_details: {
    ...knownNames("reasoning_tokens", "text_tokens", "audio_tokens", "image_tokens"),
    ...knownNames("accepted_prediction_tokens", "rejected_prediction_tokens"),
  },
  // Several compatible vendors repeat the details under the names of responses.
  ...knownNames("input_tokens_details", "output_tokens_details"),
};

/**
 * Reads what Perplexity's research bills in addition to input and output: the sources that it read
 * and the reasoning about them. Undefined for other replies, in which `reasoning_tokens` at this
 * position are part of the output.
 */
function researchTokens({ citation_tokens: cited, reasoning_tokens: reasoning }: JsonRecord) {
  return cited == null ? undefined : { cited, reasoning };
}

/** The figures for a client. */
export function encodeUsage(usage: Usage): JsonRecord {
  const { inputTokens, outputTokens, cacheWriteTokens } = usage;
  const { audioInputTokens, audioOutputTokens, imageOutputTokens, webSearches } = usage;
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      ...(cacheWriteTokens > 0 && { cache_write_tokens: cacheWriteTokens }),
      ...(audioInputTokens !== undefined && { audio_tokens: audioInputTokens }),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      ...(audioOutputTokens !== undefined && { audio_tokens: audioOutputTokens }),
      ...(imageOutputTokens !== undefined && { image_tokens: imageOutputTokens }),
    },
    ...(webSearches !== undefined && { server_tool_use: { web_search_requests: webSearches } }),
  };
}
