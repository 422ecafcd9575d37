/** `uas check`, which needs only the configuration. */
import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../config/problems.ts";
import { configOf, warn } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { lossWarnings } from "./price-below-cost.ts";

/** Adds the command. */
export function addCheckCommand(program: Command, { context, print }: CliTools): void {
  program
    .command("check")
    .description("check a configuration file and report everything that is wrong with it")
    .argument("[file]", "the file (default: UAS_CONFIG, else uas.yaml, else the built-in demo)")
    .action(async (file: string | undefined) => {
      print(await check(context, file));
    });
}

async function check(context: CliContext, path: string | undefined): Promise<Output> {
  try {
    return accepted(context, await configOf(context, { path, unresolved: "refuse" }));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const errors = error.problems;
    for (const problem of errors) context.err(`${problem}\n`);
    return { json: { ok: false, errors }, text: "", exitCode: 1 };
  }
}

function accepted(context: CliContext, config: Config): Output {
  const { source } = config;
  const warnings = [...config.warnings, ...lossWarnings(config, Date.now())];
  for (const warning of warnings) warn(context, warning);
  const vendors = config.vendors.size;
  const models = config.models.size;
  const text = `ok: ${vendors} ${vendors === 1 ? "vendor" : "vendors"}, ${models} ${models === 1 ? "model" : "models"}`;
  return { json: { ok: true, source, vendors, models, warnings }, text };
}
