/** Reads usage: tokens, and the calls of Google's own tools. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ToolCalls } from "../billed-features.ts";
import { tokensMax } from "../usage.ts";
import { type JsonRecord, protoCountAt, recordAt, recordsAt, textAt } from "../json/value.ts";

/**
 * The usage so far: each chunk's counts hold for the whole reply. What tools of Gemini itself brought in is
 * input, and thoughts are output, which the candidates' count leaves out.
 *
 * @param tools the calls of tools so far. Default: none
 * @returns `undefined` where the chunk does not tell the input, which no reply is without
 */
export function readUsage(chunk: JsonRecord, tools?: ToolCalls): Usage | undefined {
  const counts = recordAt(chunk, "usageMetadata");
  if (counts === undefined) return undefined;
  const prompt = protoCountAt(counts, "promptTokenCount");
  if (prompt === undefined) return undefined;
  const reasoningTokens = protoCountAt(counts, "thoughtsTokenCount") ?? 0;
  const found = protoCountAt(counts, "toolUsePromptTokenCount") ?? 0;
  const inputTokens = Math.min(prompt + found, tokensMax);
  const cached = Math.min(protoCountAt(counts, "cachedContentTokenCount") ?? 0, inputTokens);
  const written = protoCountAt(counts, "candidatesTokenCount") ?? 0;
  const usage = create(UsageSchema, {
    inputTokens,
    cachedInputTokens: cached,
    outputTokens: Math.min(written + reasoningTokens, tokensMax),
    reasoningTokens,
    ...tools,
  });
  const heard =
    audioTokens(counts, "promptTokensDetails") +
    audioTokens(counts, "toolUsePromptTokensDetails") -
    audioTokens(counts, "cacheTokensDetails");
  const audioInputTokens = Math.min(heard, inputTokens - cached);
  if (audioInputTokens > 0) usage.audioInputTokens = audioInputTokens;
  const spoken = Math.min(audioTokens(counts, "candidatesTokensDetails"), written);
  if (spoken > 0) usage.audioOutputTokens = spoken;
  return usage;
}

/** The tokens of audio among those of a list by modality. */
function audioTokens(counts: JsonRecord, name: string): number {
  if (counts[name] === undefined) return 0;
  let tokens = 0;
  for (const detail of recordsAt(counts, name)) {
    if (textAt(detail, "modality") === "AUDIO") tokens += protoCountAt(detail, "tokenCount") ?? 0;
  }
  return tokens;
}

/** Counts the calls of Google's tools in a reply: metadata that chunks repeat count once. */
export class GeminiToolCount {
  readonly #queries = new Set<string>();
  readonly #pages = new Set<string>();
  #isGrounded = false;
  #runs = 0;

  /** Reads a candidate of a chunk. */
  read(candidate: JsonRecord): void {
    const grounding = recordAt(candidate, "groundingMetadata");
    if (grounding !== undefined) this.#readGrounding(grounding);
    const fetched = recordAt(candidate, "urlContextMetadata");
    for (const page of fetched ? recordsAt(fetched, "urlMetadata") : []) {
      this.#pages.add(textAt(page, "retrievedUrl"));
    }
  }

  /** Counts a part with code that Google ran. */
  addRun(): void {
    this.#runs++;
  }

  /** The calls so far; `undefined`: none. */
  get calls(): ToolCalls | undefined {
    const searches = this.#queries.size || (this.#isGrounded ? 1 : 0);
    const fetches = this.#pages.size;
    if (searches + fetches + this.#runs === 0) return undefined;
    return {
      ...(searches > 0 && { webSearches: searches }),
      ...(fetches > 0 && { webFetches: fetches }),
      ...(this.#runs > 0 && { codeExecutions: this.#runs }),
    };
  }

  /** Metadata without sources and queries says that nothing was searched. */
  #readGrounding(grounding: JsonRecord): void {
    const { webSearchQueries: queries, searchEntryPoint, groundingChunks } = grounding;
    for (const query of Array.isArray(queries) ? queries : []) {
      if (typeof query === "string" && query.trim() !== "") this.#queries.add(query);
    }
    const hasSources = Array.isArray(groundingChunks) && groundingChunks.length > 0;
    if (hasSources || searchEntryPoint != null) this.#isGrounded = true;
  }
}
