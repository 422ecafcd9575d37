/** The estimate of tokens without a tokenizer. */
import { bytesPerToken } from "../../config/limits.ts";

/** Estimates the tokens of a text that nobody counted, for the charge. Holds use an upper bound instead:
 * dialect/json/text-weight.ts. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}
