/** Opens configuration and services for a command. */
import type { Transport } from "@connectrpc/connect";
import type { Config, Settings } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import { readSettings, type ReadSettings } from "../config/settings.ts";
import type { CliContext } from "./context.ts";

/** Writes a warning to standard error. */
export function warn(context: CliContext, message: string): void {
  context.err(`warning: ${message}\n`);
}

/** Reads the environment and warns about variables without effect. */
export function settingsOf(context: CliContext): ReadSettings {
  const settings = readSettings(context.env, context.cwd);
  for (const warning of settings.warnings) warn(context, warning);
  return settings;
}

/**
 * Reads the configuration.
 *
 * @param options.unresolved `placeholder` for commands that contact no vendor and so need no vendor
 * secret
 */
export async function configOf(
  context: CliContext,
  options: { readonly path?: string | undefined; readonly unresolved: "refuse" | "placeholder" },
): Promise<Config> {
  const { env, cwd } = context;
  return loadConfig({ ...options, env, cwd, kinds: await context.servedKinds() });
}

/** The services of this installation, for one command. */
export interface OpenBackend {
  readonly transport: Transport;
  readonly config: Config;
  readonly settings: Settings;
}

/** Opens the services, runs the work, and always closes them. */
export async function withBackend<Result>(
  context: CliContext,
  work: (backend: OpenBackend) => Promise<Result>,
): Promise<Result> {
  const settings = settingsOf(context);
  const config = await configOf(context, { unresolved: "placeholder" });
  const { openBackend } = await context.app();
  const onLowBalance = (accountId: string): void =>
    warn(context, `account ${accountId} has fallen below its low-balance threshold`);
  const backend = await openBackend({ settings, config, onLowBalance });
  try {
    return await work({ transport: backend.transport, config, settings });
  } finally {
    await backend.close();
  }
}
