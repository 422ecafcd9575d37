/** `uas serve`. */
import type { Command } from "commander";
import { configOf, settingsOf, warn } from "./backend.ts";
import type { CliTools } from "./context.ts";

/** Adds the command. */
export function addServeCommand(program: Command, { context }: CliTools): void {
  program
    .command("serve")
    .description("run the gateway until SIGTERM or SIGINT, then let running calls finish")
    .action(async () => {
      const settings = settingsOf(context);
      const config = await configOf(context, { unresolved: "refuse" });
      for (const warning of config.warnings) warn(context, warning);
      const { serve } = await context.app();
      await serve({ settings, config });
    });
}
