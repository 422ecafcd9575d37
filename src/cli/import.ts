/** `uas import`: writes `uas.yaml` from the configuration of another gateway. */
import type { Command } from "commander";
import type { CliContext, CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import type { ImportPlan } from "./gateway-import/plan.ts";
import { marginArgument, sourceName, writeNew } from "./price-import/arguments.ts";
import { type MarginPpm, parseMargin } from "./price-import/decimal.ts";
import type { SourceName } from "./price-import/open-source.ts";
import { countArgument } from "./values.ts";

interface ImportOptions {
  readonly from?: SourceName;
  readonly margin: MarginPpm;
  readonly maxOutputTokens?: number;
  readonly output?: string;
}

type Product = "litellm" | "new-api";

/** Adds the commands. */
export function addImportCommands(command: Command, tools: CliTools): void {
  addImport(command.command("litellm"), "litellm", tools);
  addImport(command.command("new-api"), "new-api", tools);
}

const files = {
  litellm: ["write uas.yaml from LiteLLM's config.yaml", "the config.yaml of LiteLLM's proxy"],
  "new-api": ["write uas.yaml from channels of new-api", "channels as JSON"],
} as const;

function addImport(command: Command, from: Product, { context, print }: CliTools): void {
  const [description, file] = files[from];
  command
    .description(description)
    .argument("<file>", file)
    .option(
      "--margin <percent>",
      "compute prices: the cost and this percentage of it, such as 20%",
      marginArgument,
      parseMargin("0%"),
    )
    .option(
      "--from <list>",
      "genai-prices (comes with the gateway), a downloaded file, or models.dev:FILE",
      sourceName,
    )
    .option(
      "--max-output-tokens <count>",
      "max_output_tokens of models whose limit is not known",
      countArgument,
    )
    .option("--output <file>", "write to a new file instead of standard output")
    .action(async (path: string, options: ImportOptions) => {
      print(await importFile(context, { from, path, options }));
    });
}

async function importFile(
  context: CliContext,
  file: { readonly from: Product; readonly path: string; readonly options: ImportOptions },
): Promise<Output> {
  const { from, maxOutputTokens, margin: marginPpm, output } = file.options;
  const {
    readLitellm,
    readNewApi,
    readText,
    planImport,
    planYaml,
    reportLines,
    marginText,
    openSource,
  } = await loadImport();
  const text = readText(context.cwd, file.path);
  const source =
    file.from === "litellm" ? readLitellm(text, file.path) : readNewApi(text, file.path);
  const list = openSource(from ?? { format: "genai-prices", path: undefined }, context.cwd);
  const kinds = await context.servedKinds();
  const plan = planImport(source, { list, marginPpm, maxOutputTokens, kinds, nowMs: Date.now() });
  for (const line of reportLines(plan)) context.err(`${line}\n`);
  checkVendors(plan, file.path);
  const head = `Imported from ${file.from}; prices of the file or of ${list.title}, margin ${marginText(marginPpm)} of the cost. Next: uas check`;
  const yaml = planYaml(plan, head);
  if (output === undefined) return { json: importJson(plan, yaml), text: yaml.trimEnd() };
  writeNew(context.cwd, output, yaml);
  return { json: importJson(plan, yaml), text: `${output} is written: run uas check ${output}` };
}

/** Late, so that no other command loads the price list. */
async function loadImport() {
  const [litellm, newApi, read, plan, yaml, report, source] = await Promise.all([
    import("./gateway-import/litellm.ts"),
    import("./gateway-import/new-api.ts"),
    import("./gateway-import/read.ts"),
    import("./gateway-import/plan.ts"),
    import("./gateway-import/yaml.ts"),
    import("./price-import/report.ts"),
    import("./price-import/open-source.ts"),
  ]);
  return { ...litellm, ...newApi, ...read, ...plan, ...yaml, ...report, ...source };
}

function checkVendors({ vendors }: ImportPlan, path: string): void {
  if (vendors.length > 0) return;
  throw new CliError(`${path} has no model that can be imported: the lines above say why`);
}

function importJson({ vendors, models, variables, notes }: ImportPlan, yaml: string) {
  return {
    vendors: vendors.map(({ name }) => name),
    models: models.filter(({ prices }) => prices !== undefined).map(({ key }) => key),
    unpriced: models.filter(({ prices }) => prices === undefined).map(({ key }) => key),
    variables: [...variables.keys()],
    notes,
    yaml,
  };
}
