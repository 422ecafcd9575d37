/** Arguments of commands that read price lists. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { InvalidArgumentError } from "commander";
import { failureMessage } from "../../core/error-words.ts";
import { CliError } from "../failure.ts";
import { type MarginPpm, parseMargin } from "./decimal.ts";
import type { SourceName } from "./open-source.ts";

/** The option that names price lists, and its description. */
export const listOption = [
  "--from <list>",
  "genai-prices (comes with the gateway), a downloaded file, or models.dev:FILE; repeat it for lists that must agree",
] as const;

const formats = ["genai-prices", "models.dev"] as const;

/** Parses one or more price lists. */
export function sourceArgument(
  text: string,
  before: readonly SourceName[] = [],
): readonly SourceName[] {
  return [...before, sourceName(text)];
}

/** Parses a price list. */
export function sourceName(text: string): SourceName {
  if (text === "genai-prices") return { format: text, path: undefined };
  if (text === "models.dev") {
    throw new InvalidArgumentError(
      "Nothing is downloaded: run curl -O https://models.dev/api.json and write --from models.dev:api.json.",
    );
  }
  const format = formats.find((each) => text.startsWith(`${each}:`));
  const path = format === undefined ? text : text.slice(format.length + 1);
  if (path === "") throw new InvalidArgumentError("Name a file, such as models.dev:api.json.");
  return { format, path };
}

/** Parses a margin such as `20%`. */
export function marginArgument(text: string): MarginPpm {
  const margin = parseMargin(text);
  if (margin !== undefined) return margin;
  throw new InvalidArgumentError(
    "Write a percentage of the cost such as 20% or 12.5%, at most 4 digits after the point.",
  );
}

/**
 * Writes a new file, never over one that exists: it could be the configuration.
 *
 * @throws CliError if it cannot be written
 */
export function writeNew(cwd: string, path: string, yaml: string): void {
  try {
    writeFileSync(resolve(cwd, path), yaml, { flag: "wx" });
  } catch (error) {
    const reason = failureMessage(error);
    throw new CliError(`cannot write ${path}: ${reason}; name a new file`, { cause: error });
  }
}
