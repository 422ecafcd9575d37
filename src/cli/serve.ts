/** `uas serve`. */
import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { configOf, settingsOf, warn } from "./backend.ts";
import type { CliTools } from "./context.ts";

/** Adds the action of `uas serve`. */
export function addServe(command: Command, { context }: CliTools): void {
  command.action(async () => {
    const settings = settingsOf(context);
    const readConfig = async (): Promise<Config> => {
      const config = await configOf(context, { unresolved: "refuse" });
      for (const warning of config.warnings) warn(context, warning);
      return config;
    };
    const config = await readConfig();
    const { serve } = await context.app();
    await serve({ settings, config, readConfig });
  });
}
