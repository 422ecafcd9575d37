import { ConfigError } from "../config/problems.ts";
import { failureMessage } from "../core/error-words.ts";

/** The lines to print for a failure: one, but one per problem for a configuration. */
export function failureLines(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  return [`uas: ${failureMessage(error)}`];
}
