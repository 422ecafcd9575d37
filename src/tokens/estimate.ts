/** The estimate of tokens without a tokenizer. */
import { bytesPerToken } from "../core/limits.ts";

/**
 * Estimates the tokens of an uncounted text, for the charge. Holds use an upper bound instead:
 * wire/json/text-weight.ts.
 */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}
