/** Usage as responses have it: cached and written tokens are among those read. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { isRecord, type JsonRecord, recordAt } from "../../wire/json/value.ts";
import { knownNames, unknownFigures } from "../features/usage-members.ts";
import {
  firstCount,
  largestCount,
  reportedUsage,
  tokenCount,
  wholeTotals,
} from "../features/usage.ts";

/**
 * Reads `usage`; undefined if it is unusable.
 *
 * @param member reads other members of the response. Default: there are none
 */
export function readUsage(
  usage: unknown,
  member: (name: string) => unknown = () => undefined,
): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const input = recordAt(usage, "input_tokens_details") ?? {};
  const details = recordAt(usage, "output_tokens_details") ?? {};
  const cached = firstCount(input["cached_tokens"], usage["cache_read_input_tokens"]);
  const written = firstCount(input["cache_write_tokens"], usage["cache_creation_input_tokens"]);
  const totals = wholeTotals({
    input: usage["input_tokens"],
    output: usage["output_tokens"],
    total: usage["total_tokens"],
    cached,
    written,
    ofAnthropic: [usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]],
  });
  const read = reportedUsage({
    input: totals.input,
    cached,
    written,
    halfDayWritten: recordAt(input, "cache_write_tokens_details")?.["ttl_12h_tokens"],
    heard: input["audio_tokens"],
    output: totals.output,
    reasoning: largestCount(details["reasoning_tokens"], totals.hidden),
    spoken: details["audio_tokens"],
    drawn: details["image_tokens"],
    serviceTier: member("service_tier"),
    unknown: unknownFigures(usage, knownMembers),
    ...toolUsage(usage),
  });
  const searches = billedSearches(member("tool_usage"));
  if (read !== undefined && searches !== undefined) read.webSearches = searches;
  return read;
}

/** The members of the usage of OpenAI, and of vendors that speak its style. */
const knownMembers = {
  ...knownNames("input_tokens", "output_tokens", "total_tokens"),
  ...knownNames("cache_read_input_tokens", "cache_creation_input_tokens"),
  ...knownNames("prompt_tokens", "completion_tokens", "cost_in_usd_ticks", "num_sources_used"),
  num_server_side_tools_used: true as const,
  // Their calls are counted by tool.
  server_side_tool_usage_details: {
    ...knownNames("web_search_calls", "code_interpreter_calls", "file_search_calls"),
  },
  tool_calls_details: { search_web: true as const, web_search: true as const },
  input_tokens_details: {
    ...knownNames("cached_tokens", "cache_write_tokens"),
    ...knownNames("text_tokens", "audio_tokens", "image_tokens"),
    cache_write_tokens_details: knownNames("ttl_30m_tokens", "ttl_12h_tokens"),
  },
  output_tokens_details: knownNames(
    "reasoning_tokens",
    "text_tokens",
    "audio_tokens",
    "image_tokens",
  ),
};

/** The searches that OpenAI bills, also 0: some that its items show are free. */
function billedSearches(tools: unknown): number | undefined {
  const searches = isRecord(tools) ? recordAt(tools, "web_search") : undefined;
  return tokenCount(searches?.["num_requests"]);
}

/**
 * Calls of the tools that the vendor ran, if its usage has them. Most vendors report them as items
 * of the output only.
 */
function toolUsage(usage: JsonRecord) {
  // xAI.
  const ran = recordAt(usage, "server_side_tool_usage_details");
  if (ran !== undefined) {
    return {
      webSearches: ran["web_search_calls"],
      codeExecutions: ran["code_interpreter_calls"],
      fileSearches: ran["file_search_calls"],
    };
  }
  // Perplexity.
  const called = recordAt(usage, "tool_calls_details");
  const callsOf = (name: string): unknown => called && recordAt(called, name)?.["invocation"];
  return called && { webSearches: callsOf("search_web") ?? callsOf("web_search") };
}

/** Writes `usage`, with both objects of details: some clients read them without looking. */
export function usageJson(usage: Usage | undefined): JsonRecord | null {
  if (usage === undefined) return null;
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage;
  return {
    input_tokens: inputTokens,
    input_tokens_details: {
      cached_tokens: cachedInputTokens,
      cache_write_tokens: cacheWriteTokens,
    },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}
