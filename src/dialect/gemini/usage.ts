/** Reads token usage. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type JsonRecord, protoCountAt, recordAt } from "../json/value.ts";

/**
 * The usage so far: each chunk's counts hold for the whole reply. What tools of Gemini itself brought in is
 * input, and thoughts are output, which the candidates' count leaves out.
 */
export function readUsage(chunk: JsonRecord): Usage | undefined {
  const counts = recordAt(chunk, "usageMetadata");
  if (counts === undefined) return undefined;
  const prompt = protoCountAt(counts, "promptTokenCount") ?? 0;
  const reasoning = protoCountAt(counts, "thoughtsTokenCount") ?? 0;
  const inputTokens = prompt + (protoCountAt(counts, "toolUsePromptTokenCount") ?? 0);
  return {
    $typeName: "uas.type.v1.Usage",
    inputTokens,
    cachedInputTokens: Math.min(protoCountAt(counts, "cachedContentTokenCount") ?? 0, inputTokens),
    cacheWriteTokens: 0,
    outputTokens: (protoCountAt(counts, "candidatesTokenCount") ?? 0) + reasoning,
    reasoningTokens: reasoning,
  };
}
