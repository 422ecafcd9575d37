/** Differences between Gemini series, derived from the model name. */

/** Differences of a model's series, by its name. */
export interface ModelTraits {
  /**
   * Whether it takes a thinking level (from Gemini 3 on) or a budget (2.5); undefined if neither.
   */
  readonly thinking: "level" | "budget" | undefined;
  /**
   * Whether it refuses a function call without the signature that it came with: from Gemini 3 on.
   */
  readonly needsSignatures: boolean;
  /** Whether a function may answer with pictures: from Gemini 3 on. */
  readonly mediaResponses: boolean;
  /** Whether it is a model that always thinks, and has no lowest level. */
  readonly isPro: boolean;
}

/**
 * Reads the series from the model's name. Names without a series (`gemini-flash-latest`, a tuned
 * model) count as the newest if they contain `latest`, else as 2.5.
 */
export function traitsOf(model: string): ModelTraits {
  const [, major, minor = "0"] = /gemini-(\d+)(?:\.(\d+))?/.exec(model) ?? [];
  const isLatest = model.endsWith("-latest");
  const series = major === undefined ? (isLatest ? 3 : 2.5) : Number(`${major}.${minor}`);
  const isNew = series >= 3;
  return {
    thinking: isNew ? "level" : series >= 2.5 ? "budget" : undefined,
    needsSignatures: isNew,
    mediaResponses: isNew,
    isPro: /-pro\b/.test(model),
  };
}
