/** Usage as responses have it: cached and written tokens are among those read. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import { countAt, type JsonRecord, recordAt } from "../json.ts";

/** Reads `usage`; `undefined` where there is nothing usable. */
export function readUsage(response: JsonRecord): Usage | undefined {
  const usage = recordAt(response, "usage");
  if (usage === undefined) return undefined;
  const inputTokens = countAt(usage, "input_tokens");
  const outputTokens = countAt(usage, "output_tokens");
  if (inputTokens === undefined && outputTokens === undefined) return undefined;
  const input = recordAt(usage, "input_tokens_details") ?? {};
  const output = recordAt(usage, "output_tokens_details") ?? {};
  return create(UsageSchema, {
    inputTokens: inputTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    cachedInputTokens: countAt(input, "cached_tokens") ?? 0,
    cacheWriteTokens: countAt(input, "cache_write_tokens") ?? 0,
    reasoningTokens: countAt(output, "reasoning_tokens") ?? 0,
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
