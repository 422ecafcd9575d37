/** Usage: this style counts tokens read from and written to the cache beside the input, ours within it. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type ReportedUsage, reportedUsage, tokensMax } from "../usage.ts";
import { countAt, type JsonRecord, recordAt } from "../json/value.ts";

/** The vendor's figures; `undefined` where it tells neither input nor output. */
export function readUsage(record: JsonRecord): Usage | undefined {
  const fresh = countAt(record, "input_tokens");
  const output = countAt(record, "output_tokens");
  if (fresh === undefined && output === undefined) return undefined;
  const cached = countAt(record, "cache_read_input_tokens") ?? 0;
  const written = countAt(record, "cache_creation_input_tokens") ?? 0;
  const details = recordAt(record, "output_tokens_details");
  return reportedUsage({
    input: Math.min((fresh ?? 0) + cached + written, tokensMax),
    cached,
    written,
    output: output ?? 0,
    reasoning: details?.["thinking_tokens"],
    ...toolUsage(record),
    hourWritten: hourWrites(record),
  });
}

/** Calls of the tools that the vendor runs, as far as usage has them. */
export function toolUsage(record: JsonRecord): Pick<ReportedUsage, "webSearches" | "webFetches"> {
  const tools = recordAt(record, "server_tool_use");
  if (tools === undefined) return {};
  return { webSearches: tools["web_search_requests"], webFetches: tools["web_fetch_requests"] };
}

/** Of the tokens written to the cache, those kept for an hour. */
export function hourWrites(record: JsonRecord): unknown {
  return recordAt(record, "cache_creation")?.["ephemeral_1h_input_tokens"];
}

/** Usage as the wire tells it. No member is null: some SDKs refuse a null where a number may be missing. */
export interface WireUsage {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly output_tokens: number;
  readonly output_tokens_details?: { readonly thinking_tokens: number };
  readonly server_tool_use?: {
    readonly web_search_requests: number;
    readonly web_fetch_requests: number;
  };
  readonly service_tier?: string;
}

/** Usage for a client. */
export function writeUsage(usage: Usage): WireUsage {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage;
  const { reasoningTokens, webSearches = 0, webFetches = 0 } = usage;
  return {
    input_tokens: Math.max(inputTokens - cachedInputTokens - cacheWriteTokens, 0),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedInputTokens,
    output_tokens: outputTokens,
    ...(reasoningTokens > 0 && { output_tokens_details: { thinking_tokens: reasoningTokens } }),
    ...(webSearches + webFetches > 0 && {
      server_tool_use: { web_search_requests: webSearches, web_fetch_requests: webFetches },
    }),
  };
}

/** Usage for a client where the vendor told none: the estimate of the input. */
export function estimatedUsage(inputTokens: number): WireUsage {
  return {
    input_tokens: Math.max(inputTokens, 1),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 0,
  };
}
