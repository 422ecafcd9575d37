/**
 * Common interface of price lists in any format, and the provider of the list that matches a
 * vendor.
 */

/** A format of price lists. */
export type SourceFormat = "genai-prices" | "models.dev";

/** A price list. */
export interface PriceSource {
  readonly format: SourceFormat;
  /**
   * Its name with its version or date, for reports: `genai-prices (@pydantic/genai-prices 0.1.8)`.
   */
  readonly title: string;
  /**
   * Finds a model of a provider.
   *
   * @returns `undefined` if the list does not have it
   * @throws PriceRefusal if it has it in a form that cannot be read
   */
  find(provider: string, model: string): SourceEntry | undefined;
  /** The models of a provider, by the list's names; empty if it does not have the provider. */
  names(provider: string): readonly string[];
}

/** A model of a price list. */
export interface SourceEntry {
  /** Provider and model in the list's own names: `openai/gpt-5-mini`. */
  readonly name: string;
  /** Reason for the match: `same name`, or the rule of the list. */
  readonly match: string;
  /** By time, at least one. */
  readonly prices: readonly SourcePrice[];
  /** Facts besides prices. Absent if the list has none. */
  readonly facts?: ModelFacts;
}

/** Facts about a model. Absent if the list does not have them. */
export interface ModelFacts {
  readonly contextTokens?: number;
  readonly maxOutputTokens?: number;
  readonly isReasoning?: boolean;
  /** Whether it replies with text only. */
  readonly isText?: boolean;
}

/** One price of a list, as far as it is the same in all formats. */
export interface SourcePrice {
  /** Milliseconds since 1970; `-Infinity`: always. */
  readonly fromMs: number;
  /**
   * Prices by field for calls that read more tokens than `above`: first 0, then ascending. Each
   * band is complete.
   */
  readonly bands: readonly SourceBand[];
}

/** Prices by field. The values are still unchecked: a number is the text that it was written as. */
export interface SourceBand {
  readonly above: number;
  readonly fields: ReadonlyMap<string, unknown>;
}

/** Why a price is not imported. */
export type RefusalStatus = "conflicting" | "missing" | "refused" | "free";

/** A price that is not imported: why, and what to do about it. */
export class PriceRefusal extends Error {
  readonly status: RefusalStatus;
  /** Remedy for the operator. */
  readonly remedy: string;

  constructor(status: RefusalStatus, reason: string, remedy: string) {
    super(reason);
    this.name = "PriceRefusal";
    this.status = status;
    this.remedy = remedy;
  }
}

/** Reads a limit of tokens. @throws PriceRefusal if it is not a whole number of at least 1 */
export function tierLimit(value: unknown): number {
  const isLimit = typeof value === "string" && /^[1-9]\d{0,9}$/.test(value);
  if (isLimit && Number(value) <= 2_147_483_647) return Number(value);
  const reason = `a tier begins at ${JSON.stringify(value)} tokens, which uas.yaml cannot express`;
  throw new PriceRefusal("conflicting", reason, "write the cost by hand");
}

/** @throws PriceRefusal if two tiers begin at the same number of tokens */
export function checkLimits(tiers: readonly { readonly above: number }[]): void {
  const limits = tiers.map(({ above }) => above);
  const twice = limits.find((limit, index) => limits.indexOf(limit) !== index);
  if (twice === undefined) return;
  const reason = `two tiers begin at ${twice} tokens`;
  throw new PriceRefusal("conflicting", reason, "write the cost by hand");
}
