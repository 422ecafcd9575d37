/**
 * Features that vendors bill beyond a model's token prices (R-TXT-10): tools that they run, audio,
 * and longer caching. A feature is served if the model has its price, and refused otherwise. Only
 * tools that are certainly free pass without a price, so that a vendor's next tool is refused too.
 * Pure.
 */
import type { ServiceTier } from "../../core/service-tiers.ts";
import { toolCallsDefault, toolInputTokens } from "../../core/limits.ts";
import type { GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import type { Edit } from "../../wire/json/splice.ts";
import { isRecord, type JsonRecord } from "../../wire/json/value.ts";

/** The price unit that a feature needs, as `price` in the configuration spells it. */
export type FeatureUnit =
  | "cache_write_1h"
  | "cache_write_12h"
  | "cache_storage"
  | "audio_input"
  | "audio_output"
  | "image_output"
  | "tiers"
  | `tiers.${ServiceTier}`
  | ToolUnit;

/** The price unit of a tool that the vendor runs. */
export type ToolUnit = keyof typeof toolMembers;

/** The members of a usage that count the calls of each tool. */
const toolMembers = {
  "tools.web_search": "webSearches",
  "tools.web_fetch": "webFetches",
  "tools.code_execution": "codeExecutions",
  "tools.file_search": "fileSearches",
} as const;

/** The members of a usage that count calls of tools. */
export const toolCallMembers = Object.values(toolMembers);

/** Calls of the vendor's tools. Absent if there are none. */
export type ToolCalls = {
  readonly [Unit in ToolUnit as (typeof toolMembers)[Unit]]?: number | undefined;
};

/** Requested features beyond text, and the maximum that can be charged for them. */
export interface BilledFeatures extends ToolCalls {
  readonly hasAudioInput: boolean;
  readonly hasAudioOutput: boolean;
  readonly hasImageOutput: boolean;
  /** Service tiers at which it may be served, besides the usual one. */
  readonly serviceTiers?: readonly ServiceTier[] | undefined;
  /** The most tokens of what tools find, which the model reads as input. */
  readonly toolInputTokens: number;
  /** The calls that count where the vendor does not report any. */
  readonly unreported: ToolCalls;
  /** Edits of the body that set the vendor's limits, in any order. */
  readonly edits: readonly Edit[];
}

/** The facts that decide which features a request may use. */
export interface FeatureRules {
  /** Whether the call's price has a unit that is refused without one. Default: no. */
  readonly hasPrice?: ((unit: FeatureUnit) => boolean) | undefined;
  /** The most calls of a tool if the request sets no limit. Default: `toolCallsDefault`. */
  readonly maxToolCalls?: number | undefined;
  /** File stores at the vendor that all callers of the model may search. Default: none. */
  readonly fileStores?: readonly string[] | undefined;
}

/** Collects the billed features of a request. */
export class FeatureUse {
  readonly #rules: FeatureRules;
  readonly #calls: { -readonly [Member in keyof ToolCalls]: number } = {};
  readonly #unreported: { -readonly [Member in keyof ToolCalls]: number } = {};
  readonly #edits: Edit[] = [];
  #toolInputTokens = 0;
  #hasAudioInput = false;
  #hasAudioOutput = false;
  #hasImageOutput = false;
  #serviceTiers: readonly ServiceTier[] | undefined;
  #isUsed = false;

  constructor(rules: FeatureRules) {
    this.#rules = rules;
  }

  /** The most calls of a tool if the request sets no limit. */
  get maxToolCalls(): number {
    return this.#rules.maxToolCalls ?? toolCallsDefault;
  }

  /** Whether every caller of the model may search a store of files. */
  isSharedStore(id: unknown): boolean {
    return typeof id === "string" && this.#rules.fileStores?.includes(id) === true;
  }

  /** Whether the model has a price for a feature. */
  hasPrice(unit: FeatureUnit): boolean {
    return this.#rules.hasPrice?.(unit) === true;
  }

  /** Uses a feature. @throws GatewayError INVALID_REQUEST if the model has no price for it */
  use(unit: FeatureUnit, path: string, asked: string): void {
    if (!this.hasPrice(unit)) throw refuseUnpriced(path, asked, unit);
    this.#isUsed = true;
    if (unit === "audio_input") this.#hasAudioInput = true;
    if (unit === "audio_output") this.#hasAudioOutput = true;
    if (unit === "image_output") this.#hasImageOutput = true;
  }

  /**
   * Registers a tool that the vendor runs.
   *
   * @param max maximum number of calls. Default: {@link maxToolCalls}
   * @throws GatewayError INVALID_REQUEST if the model has no price for it
   */
  useTool(unit: ToolUnit, use: ToolUse): void {
    const { path, asked, max = this.maxToolCalls, foundTokens = toolInputTokens } = use;
    this.use(unit, path, asked);
    const member = toolMembers[unit];
    this.#calls[member] = (this.#calls[member] ?? 0) + max;
    this.#toolInputTokens += max * foundTokens;
  }

  /** Lets the vendor serve the request at any of these service tiers that has a price. */
  allowTiers(tiers: readonly ServiceTier[]): void {
    const priced = tiers.filter((tier) => this.hasPrice(`tiers.${tier}`));
    if (priced.length === 0) return;
    this.#isUsed = true;
    this.#serviceTiers = [...(this.#serviceTiers ?? []), ...priced];
  }

  /** Counts calls of a tool that the vendor bills without reporting them. */
  assume(unit: ToolUnit, calls: number): void {
    this.#unreported[toolMembers[unit]] = calls;
  }

  /** Adds an edit that sets a limit of the vendor. */
  edit(edit: Edit): void {
    this.#edits.push(edit);
  }

  /** The features; undefined if none is used. */
  get features(): BilledFeatures | undefined {
    if (!this.#isUsed) return undefined;
    return {
      ...this.#calls,
      hasAudioInput: this.#hasAudioInput,
      hasAudioOutput: this.#hasAudioOutput,
      hasImageOutput: this.#hasImageOutput,
      ...(this.#serviceTiers && { serviceTiers: this.#serviceTiers }),
      toolInputTokens: this.#toolInputTokens,
      unreported: this.#unreported,
      edits: this.#edits,
    };
  }
}

/** The use of a tool. */
interface ToolUse {
  /** The member that requests it. */
  readonly path: string;
  /** The tool in words. */
  readonly asked: string;
  readonly max?: number | undefined;
  /** The most tokens that one call finds. Default: `toolInputTokens`. */
  readonly foundTokens?: number | undefined;
}

/**
 * Reads the limit of calls that a request sets. @returns undefined if there is none @throws
 * GatewayError INVALID_REQUEST
 */
export function readCallLimit(value: unknown, path: string): number | undefined {
  if (value == null) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value < 2 ** 31) {
    return value;
  }
  throw invalid(path, `"${path}" must be a whole number from 1 on`);
}

/** The tools of one style. */
export interface ToolRules {
  /**
   * Patterns of types that cost tokens only: tools that the caller runs, and the vendor's free
   * ones.
   */
  readonly free: readonly string[];
  /** Types of tools that the vendor bills by the call, with the unit that prices them. */
  readonly billed: readonly (readonly [type: RegExp, unit: ToolUnit])[];
  /** Known types that are refused like unknown ones. */
  readonly refused: readonly string[];
}

/** Refuses a feature for which the model has no price. */
export function refuseUnpriced(path: string, asked: string, unit: FeatureUnit): GatewayError {
  return invalid(
    path,
    `"${path}" asks for ${asked}, which the vendor bills separately, and the model has no price "${unit}" for it: leave it out`,
  );
}

/** Refuses a tool or setting that may cost more than the model's prices cover. */
export function refuseUnknown(path: string, asked: string): GatewayError {
  return invalid(
    path,
    `"${path}" asks for ${asked}, which the vendor may bill separately, and the gateway has no price unit for it: leave it out`,
  );
}

/** Checks the type of a tool at `path`. */
export type ToolTypeCheck = (tool: JsonRecord, path: string, use: FeatureUse) => void;

/**
 * Creates the check of a tool's type.
 *
 * @param limitOf reads the maximum number of calls of a tool. Default: the request sets no limit
 * @param foundTokensOf reads the maximum number of tokens that one call finds. Default: the same as
 * for any tool
 * @throws GatewayError INVALID_REQUEST for a tool that is neither free nor priced
 */
export function toolTypeCheck(
  { free, billed }: ToolRules,
  limitOf?: (tool: JsonRecord, path: string) => number | undefined,
  foundTokensOf?: (tool: JsonRecord, path: string) => number | undefined,
): ToolTypeCheck {
  const isFree = new RegExp(`^(?:${free.join("|")})$`);
  return (tool, path, use) => {
    const { type } = tool;
    // Only functions have no type.
    if (type == null) return;
    const name = typeof type === "string" ? type : JSON.stringify(type);
    if (typeof type === "string" && isFree.test(name)) return;
    const asked = `the tool "${name.slice(0, 64)}"`;
    const [, unit] = billed.find(([pattern]) => pattern.test(name)) ?? [];
    if (unit === undefined) throw refuseUnknown(`${path}.type`, asked);
    const max = limitOf?.(tool, path);
    const foundTokens = foundTokensOf?.(tool, path);
    use.useTool(unit, { path: `${path}.type`, asked, max, foundTokens });
  };
}

/**
 * Types of JSON Schema, of cache hints and of formats of free text: they occur inside tools, but
 * are not tools.
 */
const otherTypes =
  "object|string|number|integer|boolean|array|null|ephemeral|text|grammar" as const;

/**
 * Creates a quick test of whether JSON of tools may contain one that is not free. It may err for
 * free ones only.
 */
export function suspectTools({ free }: ToolRules): (json: string) => boolean {
  const types = [...free, otherTypes].join("|");
  // One pattern with both alternatives takes three times as long.
  const pattern = new RegExp(`"type"\\s*:\\s*"(?!(?:${types})")`);
  return (json) => pattern.test(json) || (json.includes("\\u00") && /\\u00[2-7]/.test(json));
}

/**
 * Refuses replies with audio or images without a price, and other content than text. @param
 * modalities the words of the request, in any case
 */
export function checkModalities(modalities: unknown, path: string, use: FeatureUse): void {
  if (!Array.isArray(modalities)) return;
  for (const [at, each] of modalities.entries()) {
    const word = typeof each === "string" ? each.toLowerCase() : JSON.stringify(each);
    if (word === "text") continue;
    const where = `${path}[${at}]`;
    if (word === "audio") use.use("audio_output", where, "audio");
    else if (word === "image") use.use("image_output", where, "images");
    else throw refuseUnknown(where, `"${word.slice(0, 64)}"`);
  }
}

/**
 * Checks members that switch on a search or another paid service, unless they say no. Vendors bill
 * such a request at least one call, and many do not report it.
 */
export function checkSwitches(
  record: JsonRecord,
  switches: readonly (readonly [name: string, unit: ToolUnit])[],
  use: FeatureUse,
): void {
  for (const [name, unit] of switches) {
    if (!isSwitchedOn(record[name])) continue;
    use.useTool(unit, { path: name, asked: `"${name}"` });
    use.assume(unit, 1);
  }
}

/** Whether the value of a switch says more than no. */
export function isSwitchedOn(value: unknown): boolean {
  return value != null && value !== false && !(Array.isArray(value) && value.length === 0);
}

/**
 * Searches and other paid services of OpenAI, and of vendors that speak its styles or Anthropic's.
 */
const switchesOfVendors: readonly (readonly [string, ToolUnit])[] = [
  ["web_search_options", "tools.web_search"],
  ["search_parameters", "tools.web_search"],
  ["enable_search", "tools.web_search"],
  ["plugins", "tools.web_search"],
  ["web_search", "tools.web_search"],
  ["enable_enhancement", "tools.web_search"],
  ["enable_code_interpreter", "tools.code_execution"],
];

/**
 * Members with which such vendors run their own tools or models, apply stored settings, or answer
 * later at an address unknown to the gateway.
 */
const foreign = ["agent_id", "compound_custom", "mcp_servers", "deferred", "preset"] as const;

/** The members of bodies that {@link checkVendorMembers} reads. */
export const vendorMembers: readonly string[] = [
  ...foreign,
  ...switchesOfVendors.map(([name]) => name),
];

/**
 * Checks the members that only some vendors of a style support, because many vendors speak each
 * style.
 *
 * @throws GatewayError INVALID_REQUEST for a service without a price, or without a unit to price it
 */
export function checkVendorMembers(body: JsonRecord, use: FeatureUse): void {
  checkSwitches(body, switchesOfVendors, use);
  refuseMembers(body, foreign);
}

/** Refuses each of these members, unless it says no. @throws GatewayError INVALID_REQUEST */
export function refuseMembers(body: JsonRecord, names: readonly string[]): void {
  for (const name of names) {
    if (isSwitchedOn(body[name])) throw refuseUnknown(name, `"${name}"`);
  }
}

/**
 * Checks how long OpenAI is to cache a prompt: the default of a request, and marks in its items and
 * messages.
 *
 * @throws GatewayError INVALID_REQUEST for a life without a price
 */
export function checkPromptCache(body: JsonRecord, input: string, use: FeatureUse): void {
  checkCacheTtl(body["prompt_cache_options"], "prompt_cache_options", use);
  checkBreakpoints(body[input], input, use);
}

function checkBreakpoints(value: unknown, path: string, use: FeatureUse): void {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) {
      if (typeof each === "object") checkBreakpoints(each, `${path}[${at}]`, use);
    }
    return;
  }
  if (!isRecord(value)) return;
  checkCacheTtl(value["prompt_cache_breakpoint"], `${path}.prompt_cache_breakpoint`, use);
  for (const name of ["content", "output"]) checkBreakpoints(value[name], `${path}.${name}`, use);
}

function checkCacheTtl(options: unknown, path: string, use: FeatureUse): void {
  const ttl = isRecord(options) ? options["ttl"] : undefined;
  if (ttl == null || ttl === "30m") return;
  const where = `${path}.ttl`;
  const asked = "a longer cache";
  if (ttl !== "12h") throw refuseUnknown(where, asked);
  use.use("cache_write_12h", where, asked);
}

/**
 * Refuses prompts that are to be cached for longer than the prices cover. @param covered the values
 * of `ttl` that pass
 */
export function checkCacheLife(value: unknown, path: string, covered: readonly unknown[]): void {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) checkCacheLife(each, `${path}[${at}]`, covered);
    return;
  }
  if (!isRecord(value)) return;
  const control = value["cache_control"];
  if (isRecord(control) && control["ttl"] != null && !covered.includes(control["ttl"])) {
    const where = `${path === "" ? "" : `${path}.`}cache_control.ttl`;
    throw refuseUnpriced(where, "a longer cache", "cache_write_1h");
  }
  checkCacheLife(value["content"], path === "" ? "content" : `${path}.content`, covered);
  // A document may contain nested content.
  checkCacheLife(value["source"], path === "" ? "source" : `${path}.source`, covered);
}
