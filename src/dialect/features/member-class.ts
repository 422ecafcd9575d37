/**
 * Price classes of a style's names (R-TXT-13): members, blocks, tools, betas, headers and figures
 * of usage. Each style lists its names in `members.ts`. A test compares the lists with the official
 * SDKs' types. Pure.
 */
import type { FeatureUnit } from "./billed-features.ts";

/**
 * The class of a name.
 *
 * - `free`: it costs nothing, or only tokens that the usage reports.
 * - `refused`: some of its values are refused, because no unit can price them or they belong to the
 *   operator.
 * - `stored object`: it can name an object that the vendor stores, and is refused unless the object
 *   is the caller's.
 * - a price unit: some of its values are served only if the model has this price.
 */
export type MemberClass = "free" | "refused" | "stored object" | FeatureUnit | TokenUnit;

/** The price units that every text model may have. */
type TokenUnit = "input" | "output" | "cached_input" | "cache_write";

/** Names of one class. @param names separated by white space */
export function classed<Class extends MemberClass>(
  of: Class,
  names: string,
): Readonly<Record<string, Class>> {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, of]),
  );
}

/** The names of a table that need a check: all but the free ones. */
export function namesToCheck(table: Readonly<Record<string, MemberClass>>): readonly string[] {
  return Object.keys(table).filter((name) => table[name] !== "free");
}

/** The headers of a table that are sent to vendors. */
export function sentHeaders(table: Readonly<Record<string, MemberClass>>): readonly string[] {
  return Object.keys(table).filter((name) => table[name] !== "refused");
}
