/** The configuration file, for commands that compare it with what is in force. */
import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/problems.ts";
import { configOf, warn } from "./backend.ts";
import type { CliContext } from "./context.ts";

/**
 * Reads the configuration, without the vendors' secrets.
 *
 * @param options.isRequired whether there is nothing to compare it with. If not, a file that is
 * absent or faulty yields undefined
 * @throws ConfigError if it is required and faulty
 */
export async function comparedFile(
  context: CliContext,
  { isRequired }: { readonly isRequired: boolean },
): Promise<Config | undefined> {
  try {
    const config = await configOf(context, { unresolved: "placeholder" });
    // Without a file the built-in demo is read, which no operator changes.
    return config.isDemo && !isRequired ? undefined : config;
  } catch (error) {
    if (isRequired || !(error instanceof ConfigError)) throw error;
    warn(context, "the configuration file has problems, so it is not compared: run `uas check`");
    return undefined;
  }
}
