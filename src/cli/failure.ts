/** Turns failures into the lines of standard error. */
import { ConfigError } from "../config/problems.ts";
import { failureMessage } from "../core/failure-message.ts";

/** A refusal of the command line itself: the message says what to do next. */
export class CliError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CliError";
  }
}

/** What to print for a failure: one line, but for a configuration, whose problems have one each. */
export function failureLines(error: unknown): readonly string[] {
  if (error instanceof ConfigError) return error.problems;
  return [`uas: ${failureMessage(error)}`];
}
