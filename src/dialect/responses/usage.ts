/** Usage as responses have it: cached and written tokens are among those read. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { isRecord, type JsonRecord, recordAt } from "../json/value.ts";
import { firstCount, largestCount, reportedUsage, wholeTotals } from "../usage.ts";

/** Reads `usage`; `undefined` where there is nothing usable. */
export function readUsage(usage: unknown): Usage | undefined {
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
  return reportedUsage({
    input: totals.input,
    cached,
    written,
    output: totals.output,
    reasoning: largestCount(details["reasoning_tokens"], totals.hidden),
    ...toolUsage(usage),
  });
}

/** Calls of the tools that the vendor ran, where its usage has them. Most vendors report them as items of the output only. */
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
