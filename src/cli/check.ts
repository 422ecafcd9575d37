/** `uas check`, which needs only the configuration, and with `--probe` the vendors. */
import type { Command } from "commander";
import type { Config } from "../config/config.ts";
import { lossWarnings } from "../config/loss-warnings.ts";
import { ConfigError } from "../config/problems.ts";
import { configOf, warn } from "./backend.ts";
import type { CliContext, CliTools, Output, ProbedVendor } from "./context.ts";
import { isFailed, probeJson, probeTable } from "./probe-output.ts";

/** Adds the command. */
export function addCheckCommand(command: Command, { context, print }: CliTools): void {
  command
    .argument("[file]", "the file (default: UAS_CONFIG, else uas.yaml, else the built-in demo)")
    .option(
      "--probe",
      "also ask each vendor, by a request that is free of charge, if it accepts each credential and has the models",
    )
    .action(async (file: string | undefined, { probe = false }: { probe?: boolean }) => {
      print(await check(context, file, probe));
    });
}

async function check(
  context: CliContext,
  path: string | undefined,
  isProbed: boolean,
): Promise<Output> {
  try {
    const config = await configOf(context, { path, unresolved: "refuse" });
    const output = accepted(context, config, await farPrices(context, config));
    return isProbed ? withProbes(output, await probeAll(context, config)) : output;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const errors = error.problems;
    for (const problem of errors) context.err(`${problem}\n`);
    return { json: { ok: false, errors }, text: "", exitCode: 1 };
  }
}

/** The price list is loaded late, as no other command needs it. */
async function farPrices({ cwd }: CliContext, config: Config): Promise<readonly string[]> {
  const [{ farWarnings }, { openSource }] = await Promise.all([
    import("./price-import/far-prices.ts"),
    import("./price-import/open-source.ts"),
  ]);
  const source = openSource({ format: "genai-prices", path: undefined }, cwd);
  return farWarnings(config, source, Date.now());
}

async function probeAll({ app }: CliContext, config: Config): Promise<readonly ProbedVendor[]> {
  return (await app()).probeVendors(config);
}

function withProbes({ json, text }: AcceptedOutput, probes: readonly ProbedVendor[]): Output {
  const failed = probes.filter(isFailed).length;
  const last = failed === 0 ? text : `failed: ${failed} of ${probes.length} probes`;
  return {
    json: { ...json, ok: failed === 0, probes: probes.map(probeJson) },
    text: probes.length === 0 ? text : `${probeTable(probes)}\n\n${last}`,
    exitCode: failed === 0 ? 0 : 1,
  };
}

type AcceptedOutput = Output & { readonly json: object };

function accepted(
  context: CliContext,
  config: Config,
  farPriceWarnings: readonly string[],
): AcceptedOutput {
  const { source } = config;
  const warnings = [...config.warnings, ...lossWarnings(config, Date.now()), ...farPriceWarnings];
  for (const warning of warnings) warn(context, warning);
  const vendors = config.vendors.size;
  const models = config.models.size;
  const text = `ok: ${vendors} ${vendors === 1 ? "vendor" : "vendors"}, ${models} ${models === 1 ? "model" : "models"}`;
  return { json: { ok: true, source, vendors, models, warnings }, text };
}
