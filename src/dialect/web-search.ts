/** The one built-in tool that every style has: its options in each style, in common words. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { OpaquePart } from "../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../core/validation.ts";
import { isRecord, type JsonRecord, parseRecord, recordAt, textAt } from "../wire/json/value.ts";

/** A search of the web, as a request offers it to the model. */
export interface WebSearch {
  /** The only domains to look at. Empty for all. */
  readonly allowedDomains: readonly unknown[];
  /** Domains to omit. Empty if there are none. */
  readonly blockedDomains: readonly unknown[];
  /**
   * Location of the user: `type` `approximate`, and `city`, `country` …. Undefined if not stated.
   */
  readonly location: JsonRecord | undefined;
  /** Amount of the search results to read: `low`, `medium`, `high`. Empty if not stated. */
  readonly contextSize: string;
  /** The most searches. Undefined for no limit. */
  readonly usesMax: unknown;
  /** Members specific to the style, by their names. */
  readonly others: readonly string[];
}

/** Reads the search of any style; `undefined` if the tool is another. */
export function readWebSearch({ dialect, type, json }: OpaquePart): WebSearch | undefined {
  const tool = parseRecord(json) ?? {};
  switch (dialect) {
    case Dialect.CHAT_COMPLETIONS:
      return type === "web_search_options" ? ofChat(tool) : undefined;
    case Dialect.RESPONSES:
      return /^web_search(?:_preview)?(?:_\d+)*$/.test(type) ? ofResponses(tool) : undefined;
    case Dialect.MESSAGES:
      return /^web_search_\d+$/.test(type) ? ofMessages(tool) : undefined;
    case Dialect.UNSPECIFIED:
    case Dialect.PLATFORM:
    case Dialect.GEMINI:
    case Dialect.RERANK:
    case Dialect.RERANK_V2:
    default:
      return undefined;
  }
}

/**
 * @throws GatewayError INVALID_REQUEST for domains that the vendor's search cannot be restricted to
 */
export function refuseDomains(domains: readonly unknown[], member: string): void {
  if (domains.length === 0) return;
  throw invalid(
    `tools.${member}`,
    `"${member}" of the web search is not supported with this model`,
  );
}

/** Records options that a vendor's search does not have, each by its name. */
export function dropWebSearch(
  search: WebSearch,
  known: ReadonlySet<"location" | "contextSize" | "usesMax">,
  drop: (name: string) => void,
): void {
  if (search.location !== undefined && !known.has("location")) drop("tools.user_location");
  if (search.contextSize !== "" && !known.has("contextSize")) drop("tools.search_context_size");
  if (search.usesMax !== undefined && !known.has("usesMax")) drop("tools.max_uses");
  for (const name of search.others) drop(`tools.${name}`);
}

function ofChat(options: JsonRecord): WebSearch {
  const { search_context_size: _size, user_location: _location, ...others } = options;
  const location = recordAt(options, "user_location");
  const approximate = location && recordAt(location, "approximate");
  return {
    allowedDomains: [],
    blockedDomains: [],
    location: approximate && { type: "approximate", ...approximate },
    contextSize: textAt(options, "search_context_size"),
    usesMax: undefined,
    others: namesOf(others),
  };
}

/** Only vendors of responses can search without going to the web. */
function ofResponses(tool: JsonRecord): WebSearch | undefined {
  if (tool["external_web_access"] === false) return undefined;
  const {
    type: _type,
    external_web_access: _access,
    filters: _filters,
    search_context_size: _size,
    ...rest
  } = tool;
  const { user_location: location, ...others } = rest;
  const { allowed_domains, blocked_domains, ...unknown } = recordAt(tool, "filters") ?? {};
  return {
    allowedDomains: listOf(allowed_domains),
    blockedDomains: listOf(blocked_domains),
    location: isRecord(location) ? location : undefined,
    contextSize: textAt(tool, "search_context_size"),
    usesMax: undefined,
    others: [...namesOf(others), ...namesOf(unknown).map((name) => `filters.${name}`)],
  };
}

function ofMessages(tool: JsonRecord): WebSearch {
  const { type: _type, name: _name, allowed_domains, blocked_domains, ...rest } = tool;
  const { max_uses, user_location: location, ...others } = rest;
  return {
    allowedDomains: listOf(allowed_domains),
    blockedDomains: listOf(blocked_domains),
    location: isRecord(location) ? location : undefined,
    contextSize: "",
    usesMax: max_uses ?? undefined,
    others: namesOf(others),
  };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The members that say something. */
function namesOf(members: JsonRecord): string[] {
  return Object.keys(members).filter((name) => members[name] !== null);
}
