/** The figures of a call's consumption, both ways. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import { countAt, type JsonRecord, recordAt } from "../json/value.ts";

/** The vendor's figures; `undefined` where the two totals are not whole numbers from 0 on. */
export function decodeUsage(wire: JsonRecord | undefined): Usage | undefined {
  if (wire === undefined) return undefined;
  const input = countAt(wire, "prompt_tokens");
  const output = countAt(wire, "completion_tokens");
  if (input === undefined || output === undefined) return undefined;
  const read = recordAt(wire, "prompt_tokens_details") ?? {};
  const made = recordAt(wire, "completion_tokens_details") ?? {};
  const cached = Math.min(countAt(read, "cached_tokens") ?? 0, input);
  const written = countAt(read, "cache_write_tokens") ?? 0;
  const reasoning = countAt(made, "reasoning_tokens") ?? 0;
  return create(UsageSchema, {
    inputTokens: input,
    cachedInputTokens: cached,
    cacheWriteTokens: Math.min(written, input - cached),
    outputTokens: output,
    reasoningTokens: Math.min(reasoning, output),
  });
}

/** The figures for a client. */
export function encodeUsage(usage: Usage): JsonRecord {
  const { inputTokens, outputTokens, cacheWriteTokens } = usage;
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedInputTokens,
      ...(cacheWriteTokens > 0 && { cache_write_tokens: cacheWriteTokens }),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}
