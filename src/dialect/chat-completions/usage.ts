/** The figures of a call's consumption, both ways. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type JsonRecord, recordAt } from "../json/value.ts";
import { reportedUsage, withReasoning } from "../usage.ts";

/** The vendor's figures; `undefined` where the two totals are not whole numbers from 0 on. */
export function decodeUsage(wire: JsonRecord | undefined): Usage | undefined {
  if (wire === undefined) return undefined;
  const read = recordAt(wire, "prompt_tokens_details");
  const made = recordAt(wire, "completion_tokens_details");
  const reasoning = made?.["reasoning_tokens"];
  return reportedUsage({
    input: wire["prompt_tokens"],
    cached: read?.["cached_tokens"],
    written: read?.["cache_write_tokens"],
    heard: read?.["audio_tokens"],
    output: withReasoning(wire["completion_tokens"], {
      input: wire["prompt_tokens"],
      reasoning,
      total: wire["total_tokens"],
    }),
    reasoning,
    spoken: made?.["audio_tokens"],
    // OpenRouter and Perplexity.
    webSearches:
      recordAt(wire, "server_tool_use")?.["web_search_requests"] ?? wire["num_search_queries"],
  });
}

/** The figures for a client. */
export function encodeUsage(usage: Usage): JsonRecord {
  const { inputTokens, outputTokens, cacheWriteTokens } = usage;
  const { audioInputTokens, audioOutputTokens, webSearches } = usage;
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
    },
    ...(webSearches !== undefined && { server_tool_use: { web_search_requests: webSearches } }),
  };
}
