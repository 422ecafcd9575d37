/** Reads usage: tokens, and the calls of Google's own tools. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ToolCalls } from "../features/billed-features.ts";
import { knownNames, unknownFigures } from "../features/usage-members.ts";
import { tokensMax } from "../features/usage.ts";
import {
  type JsonRecord,
  protoCountAt,
  recordAt,
  recordsAt,
  textAt,
} from "../../wire/json/value.ts";

/** The counts, and their lists by modality. */
const countNames = /^\w+(?:TokenCount|TokensDetails)$/;

/** The members of `usageMetadata`. */
const knownMembers = {
  ...knownNames(
    "promptTokenCount",
    "candidatesTokenCount",
    "totalTokenCount",
    "thoughtsTokenCount",
  ),
  ...knownNames("toolUsePromptTokenCount", "cachedContentTokenCount", "initialPromptTokenCount"),
  ...knownNames("promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails"),
  ...knownNames("toolUsePromptTokensDetails"),
};

/** Collects the usage of one reply. */
export class UsageReader {
  /** The largest counts so far, by name; lists of details as they came last. */
  readonly #counts: Record<string, unknown> = {};
  #calls = 0;
  #unknown: string | undefined;
  #tier = "";
  #usage: Usage | undefined;

  /** The usage reported so far; undefined until the input was reported. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /**
   * Reads a chunk, whose counts cover the whole reply so far. Some vendors omit counts in later
   * chunks, or write 0, so a count never decreases.
   *
   * @param tools the calls of tools so far. Default: none
   */
  read(chunk: JsonRecord, tools?: ToolCalls): void {
    const counts = recordAt(chunk, "usageMetadata") ?? {};
    const calls = Object.values(tools ?? {}).reduce<number>((sum, each) => sum + (each ?? 0), 0);
    // Most chunks of some vendors have no counts: the usage is then the same object as before.
    if (Object.keys(counts).length === 0 && calls === this.#calls) return;
    this.#calls = calls;
    for (const name of Object.keys(counts).filter((each) => countNames.test(each))) {
      const count = protoCountAt(counts, name);
      const known = protoCountAt(this.#counts, name) ?? 0;
      if (count !== undefined) this.#counts[name] = Math.max(count, known);
      else if (recordsAt(counts, name).length > 0) this.#counts[name] = counts[name];
    }
    this.#unknown = unknownFigures(counts, knownMembers) ?? this.#unknown;
    this.#usage = usageOf(this.#counts, tools);
    // Vertex AI has a word for the traffic instead.
    this.#tier = textAt(counts, "serviceTier") || textAt(counts, "trafficType") || this.#tier;
    if (this.#usage && this.#tier) this.#usage.serviceTier = this.#tier;
    if (this.#usage && this.#unknown) this.#usage.unknownMembers = this.#unknown;
  }
}

/**
 * Reads the usage of a whole reply; `undefined` if it does not report the input, which no reply is
 * without.
 */
export function readUsage(reply: JsonRecord): Usage | undefined {
  const reader = new UsageReader();
  reader.read(reply);
  return reader.usage;
}

/**
 * Tokens from Gemini's own tools count as input. Thoughts count as output, although the candidates'
 * count omits them. Some models think without a count of their thoughts: the surplus of the total
 * then counts as thoughts.
 */
function usageOf(counts: JsonRecord, tools: ToolCalls | undefined): Usage | undefined {
  const prompt = protoCountAt(counts, "promptTokenCount");
  if (prompt === undefined) return undefined;
  const found = protoCountAt(counts, "toolUsePromptTokenCount") ?? 0;
  const inputTokens = Math.min(prompt + found, tokensMax);
  const cached = Math.min(protoCountAt(counts, "cachedContentTokenCount") ?? 0, inputTokens);
  const written = protoCountAt(counts, "candidatesTokenCount") ?? 0;
  const hidden = (protoCountAt(counts, "totalTokenCount") ?? 0) - inputTokens - written;
  const thought = Math.max(protoCountAt(counts, "thoughtsTokenCount") ?? 0, hidden);
  const outputTokens = Math.min(written + thought, tokensMax);
  const usage = create(UsageSchema, {
    inputTokens,
    cachedInputTokens: cached,
    outputTokens,
    reasoningTokens: Math.min(thought, outputTokens),
    ...tools,
  });
  const heard =
    modalityTokens(counts, "promptTokensDetails", "AUDIO") +
    modalityTokens(counts, "toolUsePromptTokensDetails", "AUDIO") -
    modalityTokens(counts, "cacheTokensDetails", "AUDIO");
  const audioInputTokens = Math.min(heard, inputTokens - cached);
  if (audioInputTokens > 0) usage.audioInputTokens = audioInputTokens;
  const spoken = Math.min(modalityTokens(counts, "candidatesTokensDetails", "AUDIO"), written);
  if (spoken > 0) usage.audioOutputTokens = spoken;
  const drawn = Math.min(modalityTokens(counts, "candidatesTokensDetails", "IMAGE"), written);
  if (drawn > 0) usage.imageOutputTokens = drawn;
  return usage;
}

/** Returns the tokens of one modality in a list. */
function modalityTokens(counts: JsonRecord, name: string, modality: "AUDIO" | "IMAGE"): number {
  if (counts[name] === undefined) return 0;
  let tokens = 0;
  for (const detail of recordsAt(counts, name)) {
    if (textAt(detail, "modality") === modality) tokens += protoCountAt(detail, "tokenCount") ?? 0;
  }
  return tokens;
}

/** Whether a page could be read. Without a status it could. */
export function isRetrieved(page: JsonRecord): boolean {
  const status = textAt(page, "urlRetrievalStatus");
  return status === "" || /_(?:SUCCESS|UNSPECIFIED)$/.test(status);
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
      if (isRetrieved(page)) this.#pages.add(textAt(page, "retrievedUrl"));
    }
  }

  /** Counts a part with code that Google ran. */
  addRun(): void {
    this.#runs++;
  }

  /** The calls so far; undefined if there is none. */
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
