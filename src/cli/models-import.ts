/** `uas models import`: a file with all models of a vendor, priced by a public list. */
import type { Command } from "commander";
import type { Config, VendorConfig } from "../config/config.ts";
import { ConfigError } from "../config/problems.ts";
import { configOf, warn } from "./backend.ts";
import type { CliContext, CliTools, Output, ProbedVendor } from "./context.ts";
import { CliError } from "./failure.ts";
import { marginArgument, sourceName, writeNew } from "./price-import/arguments.ts";
import type { MarginPpm } from "./price-import/decimal.ts";
import type { NewModels } from "./price-import/new-models.ts";
import type { SourceName } from "./price-import/open-source.ts";
import { countArgument } from "./values.ts";

interface ImportOptions {
  readonly from?: SourceName;
  readonly margin: MarginPpm;
  readonly maxOutputTokens?: number;
  readonly output?: string;
}

/** Adds options and action to the command. */
export function addModelsImport(command: Command, { context, print }: CliTools): void {
  command
    .description("write a file with all text and embedding models of a vendor, with prices")
    .argument("<vendor>", "the name of a vendor of the configuration")
    .requiredOption(
      "--margin <percent>",
      "compute prices: the cost and this percentage of it, such as 20%",
      marginArgument,
    )
    .option(
      "--from <list>",
      "genai-prices (comes with the gateway), a downloaded file, or models.dev:FILE",
      sourceName,
    )
    .option(
      "--max-output-tokens <count>",
      "max_output_tokens of models whose limit the list does not have",
      countArgument,
    )
    .option("--output <file>", "write to a new file instead of standard output")
    .action(async (vendor: string, options: ImportOptions) => {
      print(await importModels(context, vendor, options));
    });
}

async function importModels(
  context: CliContext,
  name: string,
  { from, margin: marginPpm, maxOutputTokens, output }: ImportOptions,
): Promise<Output> {
  const { config, hasSecrets } = await configWithSecrets(context);
  const vendor = vendorOf(config, name);
  const names = hasSecrets ? await namesAtVendor(context, config, vendor) : undefined;
  const nowMs = Date.now();
  const { newModels, newModelsYaml, openSource } = await loadImport();
  const source = openSource(from ?? { format: "genai-prices", path: undefined }, context.cwd);
  const found = newModels(vendor, { source, marginPpm, names, maxOutputTokens, nowMs });
  if (found.models.length === 0) {
    throw new CliError(
      `${source.title} has no price for a model of ${name}: name another list with --from`,
    );
  }
  const yaml = newModelsYaml(found, nowMs);
  if (output !== undefined) writeNew(context.cwd, output, yaml);
  const text = output === undefined ? yaml.trimEnd() : writtenText(found, output);
  return { json: importJson(found, yaml), text };
}

/** Late, so that no other command loads the price list. */
async function loadImport() {
  const [models, yaml, source] = await Promise.all([
    import("./price-import/new-models.ts"),
    import("./price-import/new-models-yaml.ts"),
    import("./price-import/open-source.ts"),
  ]);
  return { ...models, ...yaml, ...source };
}

/** The configuration, and whether the vendors' credentials could be read. */
async function configWithSecrets(
  context: CliContext,
): Promise<{ readonly config: Config; readonly hasSecrets: boolean }> {
  try {
    return { config: await configOf(context, { unresolved: "refuse" }), hasSecrets: true };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { config: await configOf(context, { unresolved: "placeholder" }), hasSecrets: false };
  }
}

function vendorOf({ vendors, source }: Config, name: string): VendorConfig {
  const vendor = vendors.get(name);
  if (vendor !== undefined) return vendor;
  const have = [...vendors.keys()].join(", ") || "none";
  throw new CliError(`${source} has no vendor ${name} (have: ${have}): add it under vendors first`);
}

/** The names that the vendor lists. Undefined if it does not list them or does not answer. */
export async function namesAtVendor(
  context: CliContext,
  config: Config,
  vendor: VendorConfig,
): Promise<readonly string[] | undefined> {
  const { probeVendors } = await context.app();
  const vendors = new Map([[vendor.name, vendor]]);
  const probes = await probeVendors({ ...config, vendors });
  const listed = probes.find(({ models = [] }) => models.length > 0)?.models;
  if (listed === undefined) warn(context, notListed(vendor.name, probes));
  return listed;
}

function notListed(vendor: string, probes: readonly ProbedVendor[]): string {
  const [first] = probes;
  const reasons = first === undefined ? ["it has no list"] : [first.verdict, first.message];
  const reason = reasons.filter((text) => text !== "").join(": ");
  return `${vendor} did not list its models (${reason}): the names are those of the price list`;
}

function writtenText({ models, leftOut }: NewModels, output: string): string {
  const out = leftOut.map(({ name, reason }) => `left out: ${name}: ${reason}`);
  const next = `${models.length} models written to ${output}: add it to include: in uas.yaml, and run uas check`;
  return [...out, next].join("\n");
}

function importJson({ vendor, source, models, leftOut, isOfVendor }: NewModels, yaml: string) {
  return {
    vendor,
    source: source.title,
    names: isOfVendor ? "vendor" : "list",
    models: models.map(({ name }) => name),
    leftOut,
    yaml,
  };
}
