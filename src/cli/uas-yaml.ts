/** The configuration file, for commands that compare it with what is in force. */
import { createClient, type Transport } from "@connectrpc/connect";
import { ConfigService } from "../../gen/uas/config/v1/config_service_pb.ts";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/problems.ts";
import { configOf, warn } from "./backend.ts";
import type { CliContext } from "./context.ts";

/**
 * Reads the file, to compare it with what the gateway has in force. Undefined if there is no file,
 * if it is faulty, or if a revision is in force, which replaces the file.
 *
 * @param gateway the running gateway
 */
export async function comparedFile(
  context: CliContext,
  gateway: Transport,
): Promise<Config | undefined> {
  const { config: inForce } = await createClient(ConfigService, gateway).getConfig({});
  if (inForce === undefined || inForce.revision > 0n) return undefined;
  try {
    const config = await configOf(context, { unresolved: "placeholder" });
    // Without a file the built-in demo is read, which no operator changes.
    return config.isDemo ? undefined : config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    warn(context, "the configuration file has problems, so it is not compared: run `uas check`");
    return undefined;
  }
}
