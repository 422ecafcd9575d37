/** The classes of service: what the contract calls `default` has two names here. */

/** From a request. */
export function readServiceTier(word: string): string {
  return word === "standard_only" ? "default" : word;
}

/** For a request; `undefined`: the style has no such class. */
export function writeServiceTier(tier: string): string | undefined {
  if (tier === "auto") return tier;
  return tier === "default" || tier === "standard" ? "standard_only" : undefined;
}

/** From a reply's usage: `standard`, `priority`, `batch`. */
export function readServedTier(word: string): string {
  return word === "standard" ? "default" : word;
}

/** For a reply's usage; `undefined`: the style has no such class. */
export function writeServedTier(tier: string): string | undefined {
  if (tier === "default" || tier === "auto") return "standard";
  return tier === "standard" || tier === "priority" || tier === "batch" ? tier : undefined;
}
