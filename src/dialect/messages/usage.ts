/**
 * Usage: this style counts tokens read from and written to the cache in addition to the input, the
 * contract as part of it.
 */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import {
  type ReportedUsage,
  reportedUsage,
  sumOfTokens,
  tokenCount,
  tokensMax,
} from "../features/usage.ts";
import { knownNames, unknownFigures } from "../features/usage-members.ts";
import {
  isRecord,
  type JsonRecord,
  recordAt,
  recordsAt,
  setMember,
  textAt,
} from "../../wire/json/value.ts";

/** The vendor's figures; `undefined` if input or output is missing: both are then estimated. */
export function readUsage(reported: JsonRecord): Usage | undefined {
  const record = withCompactions(reported);
  const fresh = tokenCount(record["input_tokens"]);
  const cached = tokenCount(record["cache_read_input_tokens"]) ?? 0;
  const written = writtenTokens(record);
  return reportedUsage({
    input: fresh === undefined ? undefined : Math.min(fresh + cached + written, tokensMax),
    cached,
    written,
    output: record["output_tokens"],
    reasoning: recordAt(record, "output_tokens_details")?.["thinking_tokens"],
    hourWritten: hourWrites(record),
    serviceTier: servedTier(record),
    unknown: unknownOf(reported),
    ...toolUsage(record),
  });
}

/** The members of Anthropic's usage, and of vendors that speak its style. */
const knownMembers = {
  ...knownNames("input_tokens", "output_tokens", "total_tokens"),
  ...knownNames("cache_creation_input_tokens", "cache_read_input_tokens"),
  cache_creation: knownNames("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
  output_tokens_details: knownNames("thinking_tokens"),
  server_tool_use: knownNames("web_search_requests", "web_fetch_requests"),
  iterations: true as const,
};

/** Returns unknown figures, including those of steps that the totals omit, such as a compaction. */
function unknownOf(record: JsonRecord): string | undefined {
  const unknown = unknownFigures(record, knownMembers);
  const steps = recordsAt(record, "iterations").filter(
    (each) => textAt(each, "type") !== "message",
  );
  const step = steps.find((each) => unknownFigures(each, {}) !== undefined);
  const named = step && `iterations.${textAt(step, "type").slice(0, 64)}`;
  return unknown !== undefined && named !== undefined ? `${unknown},${named}` : (unknown ?? named);
}

/**
 * Adds the tokens of compactions: the vendor bills them, and does not include them in the totals.
 */
function withCompactions(record: JsonRecord): JsonRecord {
  const compactions = recordsAt(record, "iterations").filter(
    (each) => textAt(each, "type") === "compaction",
  );
  if (compactions.length === 0) return record;
  const whole: Record<string, unknown> = { ...record };
  for (const name of countNames) {
    // Without input or output nothing is counted; the cache is often left out.
    const total = name.startsWith("cache") ? (record[name] ?? 0) : record[name];
    whole[name] = compactions.reduce((sum, each) => sumOfTokens(sum, each[name]), total);
  }
  return whole;
}

const countNames = [
  "input_tokens",
  "output_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
] as const;

/** The fast mode counts as a separate tier. */
function servedTier({ speed, service_tier: tier }: JsonRecord): unknown {
  return speed === "fast" ? speed : tier;
}

/** Tokens written to the cache: the total, or the sum by duration if a vendor reports no total. */
function writtenTokens(record: JsonRecord): number {
  const total = tokenCount(record["cache_creation_input_tokens"]) ?? 0;
  if (total > 0) return total;
  const parts = recordAt(record, "cache_creation") ?? {};
  const [short, long] = [parts["ephemeral_5m_input_tokens"], hourWrites(record)].map(tokenCount);
  return (short ?? 0) + (long ?? 0);
}

/** The usage of a stream: `message_start` reports the input, each `message_delta` totals. */
export class StreamUsage {
  #members: JsonRecord = {};

  /** The figures so far; `undefined` if they are not complete. */
  get usage(): Usage | undefined {
    return readUsage(this.#members);
  }

  /** Figures of the input so far; undefined if there are none. */
  get inputUsage(): Usage | undefined {
    return readUsage({ ...this.#members, output_tokens: 0 });
  }

  /** The tier that served the request, in the vendor's word. Empty if not reported. */
  get serviceTier(): string {
    return textAt(this.#members, "service_tier");
  }

  /**
   * Takes the usage of `message_start`. Its output count is a placeholder: nothing has come yet.
   */
  begin(usage: unknown): void {
    this.add(usage);
    const { output_tokens: output } = this.#members;
    if (output !== undefined) this.#members = { ...this.#members, output_tokens: 0 };
  }

  /**
   * Takes the usage of `message_delta`. A figure that is absent, null or 0 keeps the earlier one:
   * several vendors repeat only the output, and write 0 for the rest.
   */
  add(usage: unknown): void {
    if (isRecord(usage)) this.#members = updated(this.#members, usage);
  }
}

function updated(before: JsonRecord, later: JsonRecord): JsonRecord {
  const members: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(later)) {
    const known = members[name];
    if (isRecord(value)) setMember(members, name, updated(isRecord(known) ? known : {}, value));
    else if (value !== null && (!isFigure(known) || tokenCount(value))) {
      setMember(members, name, value);
    }
  }
  return members;
}

function isFigure(value: unknown): boolean {
  return typeof value === "number" || isRecord(value);
}

/** Calls of the tools that the vendor runs, as far as usage has them. */
function toolUsage(record: JsonRecord): Pick<ReportedUsage, "webSearches" | "webFetches"> {
  const tools = recordAt(record, "server_tool_use");
  if (tools === undefined) return {};
  return { webSearches: tools["web_search_requests"], webFetches: tools["web_fetch_requests"] };
}

/** Of the tokens written to the cache, those kept for an hour. */
function hourWrites(record: JsonRecord): unknown {
  return recordAt(record, "cache_creation")?.["ephemeral_1h_input_tokens"];
}

/**
 * Usage in the wire form. No member is null, because some SDKs refuse null in place of a missing
 * number.
 */
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

/** Returns usage for a client if the vendor reported none: the estimate of the input. */
export function estimatedUsage(inputTokens: number): WireUsage {
  return {
    input_tokens: Math.max(inputTokens, 1),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: 0,
  };
}
