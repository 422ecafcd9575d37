/** Opens configuration and services for a command. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
import type { Config, Settings } from "../config/config.ts";
import type { LoadOptions } from "../config/load.ts";
import { readSettings, type ReadSettings } from "../config/settings.ts";
import type { Backend, CliContext } from "./context.ts";
import { CliError } from "./failure.ts";
import { connectGateway } from "./running-gateway.ts";

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
  options: Pick<LoadOptions, "path" | "document" | "unresolved" | "secrets" | "needsPrices">,
): Promise<Config> {
  const { env, cwd } = context;
  const [{ loadConfig, loadWithCommands }, kinds] = await Promise.all([
    import("../config/load.ts"),
    context.servedKinds(),
  ]);
  // A command of a secret store runs only where the secret is used.
  const load = options.unresolved === "placeholder" ? loadConfig : loadWithCommands;
  return load({ ...options, env, cwd, kinds });
}

/** The services of this installation, for one command. */
export interface OpenBackend {
  readonly transport: Transport;
  readonly settings: Settings;
  /** Whether a running gateway answers, with the configuration that is in force. */
  readonly isRunning: boolean;
  /** The address of the console of the gateway that runs here. */
  readonly consoleUrl?: string | undefined;
}

/** Runs the work on the gateway that runs here. Undefined if none does. */
export async function withGateway<Result>(
  context: CliContext,
  work: (transport: Transport) => Promise<Result>,
): Promise<Result | undefined> {
  const running = await connectGateway(context, settingsOf(context));
  return running && work(running.transport);
}

/** Opens the services, runs the work, and always closes them. */
export async function withBackend<Result>(
  context: CliContext,
  work: (backend: OpenBackend) => Promise<Result>,
): Promise<Result> {
  const settings = settingsOf(context);
  const running = await connectGateway(context, settings);
  const backend = running ?? (await openHere(context, settings));
  try {
    const { transport } = backend;
    const isRunning = running !== undefined;
    return await work({ transport, settings, isRunning, consoleUrl: running?.consoleUrl });
  } finally {
    await backend.close();
  }
}

/**
 * Opens the services in this process, because no gateway runs here.
 *
 * @throws CliError if there is no database: only `uas serve` creates one
 */
async function openHere(context: CliContext, settings: Settings): Promise<Backend> {
  requireDatabase(settings);
  const config = await configOf(context, { unresolved: "placeholder" });
  const { openBackend } = await context.app();
  const onLowBalance = (accountId: string): void =>
    warn(context, `account ${accountId} has fallen below its low-balance threshold`);
  const readConfig = (secrets?: ReadonlyMap<string, string>) =>
    configOf(context, { unresolved: "placeholder", secrets });
  return openBackend({ settings, config, readConfig, hasPlaceholders: true, onLowBalance });
}

/** Whether a database is configured or exists. */
export function hasDatabase({ databaseUrl, dataDir }: Settings): boolean {
  return databaseUrl !== undefined || existsSync(join(dataDir, "postgres"));
}

/** Checks that a database is configured or exists. @throws CliError */
export function requireDatabase(settings: Settings): void {
  if (hasDatabase(settings)) return;
  const { dataDir } = settings;
  throw new CliError(
    `there is no database in ${dataDir}, and DATABASE_URL is not set: start the gateway with \`uas serve\`, or name the variables of its service with --env-file FILE`,
  );
}
