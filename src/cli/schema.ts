/** `uas schema`, which needs neither configuration nor database. */
import type { Command } from "commander";
import { configJsonSchema } from "../config/json-schema.ts";
import type { CliTools } from "./context.ts";

/** Adds the action. */
export function addSchemaCommand(command: Command, { context, print }: CliTools): void {
  command.action(async () => {
    const json = configJsonSchema(await context.servedKinds());
    print({ json, text: JSON.stringify(json, null, 2) });
  });
}
