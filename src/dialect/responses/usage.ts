/** Usage as responses have it: cached and written tokens are among those read. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type JsonRecord, recordAt } from "../json/value.ts";
import { reportedUsage } from "../usage.ts";

/** Reads `usage`; `undefined` where there is nothing usable. */
export function readUsage(response: JsonRecord): Usage | undefined {
  const usage = recordAt(response, "usage");
  if (usage === undefined) return undefined;
  const input = recordAt(usage, "input_tokens_details") ?? {};
  const output = recordAt(usage, "output_tokens_details") ?? {};
  return reportedUsage({
    input: usage["input_tokens"],
    cached: input["cached_tokens"],
    written: input["cache_write_tokens"],
    output: usage["output_tokens"],
    reasoning: output["reasoning_tokens"],
  });
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
