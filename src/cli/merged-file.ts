/** A configuration file with those that it includes, for RPCs that take one document. */
import type { CliContext } from "./context.ts";
import { CliError } from "./failure.ts";

/**
 * Reads a file with those that it includes as one document, and its name in messages.
 *
 * @throws CliError if an included file cannot be read
 */
export async function readMerged({ env, cwd }: CliContext, path: string) {
  const { readSource } = await import("../config/load.ts");
  const { content: document, included } = readSource({ path, env, cwd });
  const missing = included.find(({ problem }) => problem !== "");
  if (missing !== undefined) throw new CliError(`${missing.source} ${missing.problem}`);
  return { document, source: included.length === 0 ? path : `${path} with its files` };
}
