/** `uas serve`. */
import type { Command } from "commander";
import type { Config, Settings } from "../config/config.ts";
import { demoDocument } from "../config/demo-config.ts";
import { configOf, hasDatabase, settingsOf, warn } from "./backend.ts";
import type { CliContext, CliTools } from "./context.ts";

/**
 * The built-in demo in place of a faulty file, if there is a database. A revision in it may be in
 * force; otherwise the start fails once the database is open.
 *
 * @throws the error of the file if there is no database
 */
function demoIfStored(context: CliContext, settings: Settings, error: unknown): Promise<Config> {
  if (!hasDatabase(settings)) throw error;
  return configOf(context, { document: demoDocument, unresolved: "refuse" });
}

/** Adds the action of `uas serve`. */
export function addServe(command: Command, { context }: CliTools): void {
  command.action(async () => {
    const settings = settingsOf(context);
    const readConfig = async (secrets?: ReadonlyMap<string, string>): Promise<Config> => {
      const config = await configOf(context, { unresolved: "refuse", secrets });
      for (const warning of config.warnings) warn(context, warning);
      return config;
    };
    const config = await readConfig().catch((error: unknown) =>
      demoIfStored(context, settings, error),
    );
    const { serve } = await context.app();
    await serve({ settings, config, readConfig });
  });
}
