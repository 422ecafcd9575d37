/**
 * Refuses what vendors bill beyond a model's token prices (R-TXT-10): tools that they run themselves, audio, and
 * longer caching. Only tools that are known to be free pass, so that a vendor's next tool is refused too. Pure.
 */
import type { GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import { isRecord, type JsonRecord } from "./json/value.ts";

/** The price unit that a feature needs, as `price` in the configuration spells it. */
export type FeatureUnit = "cache_write_1h" | "audio_output" | `tools.${string}`;

/** The tools of one style. */
export interface ToolRules {
  /** Patterns of types that cost tokens only: tools that the caller runs, and the vendor's free ones. */
  readonly free: readonly string[];
  /** Types of tools that the vendor bills by the call, with the unit that would price them. */
  readonly billed: readonly (readonly [type: RegExp, unit: FeatureUnit])[];
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

/** Creates the check of a tool's type, at `path`. @throws GatewayError INVALID_REQUEST for a tool that is not free */
export function toolTypeCheck({
  free,
  billed,
}: ToolRules): (tool: JsonRecord, path: string) => void {
  const isFree = new RegExp(`^(?:${free.join("|")})$`);
  return ({ type }, path) => {
    // Only functions have no type.
    if (type == null) return;
    const name = typeof type === "string" ? type : JSON.stringify(type);
    if (typeof type === "string" && isFree.test(name)) return;
    const asked = `the tool "${name.slice(0, 64)}"`;
    const [, unit] = billed.find(([pattern]) => pattern.test(name)) ?? [];
    if (unit === undefined) throw refuseUnknown(`${path}.type`, asked);
    throw refuseUnpriced(`${path}.type`, asked, unit);
  };
}

/** Types of JSON Schema, of cache hints and of the formats of free text: they stand in tools, and are none. */
const otherTypes =
  "object|string|number|integer|boolean|array|null|ephemeral|text|grammar" as const;

/** Creates a quick test of whether JSON of tools may contain one that is not free. It may err for free ones only. */
export function suspectTools({ free }: ToolRules): (json: string) => boolean {
  const types = [...free, otherTypes].join("|");
  // One pattern with both alternatives takes three times as long.
  const pattern = new RegExp(`"type"\\s*:\\s*"(?!(?:${types})")`);
  return (json) => pattern.test(json) || (json.includes("\\u00") && /\\u00[2-7]/.test(json));
}

/** Refuses replies with audio or other content than text. @param modalities the words of the request, in any case */
export function checkModalities(modalities: unknown, path: string): void {
  if (!Array.isArray(modalities)) return;
  for (const [at, each] of modalities.entries()) {
    const word = typeof each === "string" ? each.toLowerCase() : JSON.stringify(each);
    if (word === "text") continue;
    const where = `${path}[${at}]`;
    if (word === "audio") throw refuseUnpriced(where, "audio", "audio_output");
    throw refuseUnknown(where, `"${word.slice(0, 64)}"`);
  }
}

/** Refuses members that switch on a search or another paid service, unless they say no. */
export function checkSwitches(
  record: JsonRecord,
  switches: readonly (readonly [name: string, unit: FeatureUnit])[],
): void {
  for (const [name, unit] of switches) {
    const value = record[name];
    if (value == null || value === false) continue;
    throw refuseUnpriced(name, `"${name}"`, unit);
  }
}

/** Refuses prompts that are to be cached for longer than the prices cover. @param covered the values of `ttl` that pass */
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
  // A document may consist of content of its own.
  checkCacheLife(value["source"], path === "" ? "source" : `${path}.source`, covered);
}
