/** The service tiers of vendors, and their words for them. */

/** Service tiers that can have separate prices. */
export const serviceTiers = ["flex", "priority", "fast", "ultrafast", "batch"] as const;

/** A service tier that can have separate prices. */
export type ServiceTier = (typeof serviceTiers)[number];

/** Vendors' words for their usual service, and for capacity that is paid in advance. */
const standardWords: ReadonlySet<string> = new Set([
  ...["default", "standard", "standard_only", "unspecified", "traffic_type_unspecified"],
  ...["on_demand", "on_demand_offpeak", "scale", "provisioned_throughput"],
]);

const isTier = (word: string): word is ServiceTier =>
  (serviceTiers as readonly string[]).includes(word);

/**
 * The tier of a vendor's word.
 *
 * @returns undefined if the word is no known tier, such as `auto`
 */
export function tierOfWord(word: string): ServiceTier | "standard" | undefined {
  const plain = word.trim().toLowerCase();
  if (standardWords.has(plain)) return "standard";
  const tier = plain.replace(/^on_demand_/, "");
  return isTier(tier) ? tier : undefined;
}

/**
 * A tier, and another name of it: OpenAI serves requests for `fast` and `priority` alike, and
 * answers `priority`.
 */
export function sameTiers(tier: ServiceTier): readonly ServiceTier[] {
  if (tier === "fast") return ["fast", "priority"];
  return tier === "priority" ? ["priority", "fast"] : [tier];
}
