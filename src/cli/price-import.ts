/** `uas price import`: costs and prices from a public price list, to review and copy into `uas.yaml`. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import type { Config } from "../config/config.ts";
import { failureMessage } from "../core/failure-message.ts";
import { configOf } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import { type MarginPpm, parseMargin } from "./price-import/decimal.ts";
import type { SourceName } from "./price-import/open-source.ts";

interface ImportOptions {
  readonly from?: readonly SourceName[];
  readonly vendor?: string;
  readonly margin?: MarginPpm;
  readonly allowFree?: boolean;
  readonly output?: string;
}

/** Adds the command to `uas price`. */
export function addPriceImportCommand(price: Command, { context, print }: CliTools): void {
  price
    .command("import")
    .description("compare costs and prices with a price list and write what differs as YAML")
    .option(
      "--from <list>",
      "genai-prices (comes with the gateway), a downloaded file, or models.dev:FILE; repeat it for lists that must agree",
      sourceArgument,
    )
    .option("--vendor <vendor>", "only routes to this vendor of the configuration")
    .option(
      "--margin <percent>",
      "also compute prices: the cost and this percentage of it, such as 20%",
      marginArgument,
    )
    .option("--allow-free", "import prices of 0, too")
    .option("--output <file>", "write the YAML to a new file instead of standard output")
    .action(async (options: ImportOptions) => {
      print(await importPrices(context, options));
    });
}

const formats = ["genai-prices", "models.dev"] as const;

function sourceArgument(text: string, before: readonly SourceName[] = []): readonly SourceName[] {
  return [...before, sourceName(text)];
}

function sourceName(text: string): SourceName {
  if (text === "genai-prices") return { format: text, path: undefined };
  if (text === "models.dev") {
    throw new InvalidArgumentError(
      "Nothing is downloaded: run curl -O https://models.dev/api.json and write --from models.dev:api.json.",
    );
  }
  const format = formats.find((each) => text.startsWith(`${each}:`));
  const path = format === undefined ? text : text.slice(format.length + 1);
  if (path === "") throw new InvalidArgumentError("Name a file, such as models.dev:api.json.");
  return { format, path };
}

function marginArgument(text: string): MarginPpm {
  const margin = parseMargin(text);
  if (margin !== undefined) return margin;
  throw new InvalidArgumentError(
    "Write a percentage of the cost such as 20% or 12.5%, at most 4 digits after the point.",
  );
}

async function importPrices(context: CliContext, options: ImportOptions): Promise<Output> {
  const config = await configOf(context, { unresolved: "placeholder" });
  checkVendor(config, options.vendor);
  const { compareModels, differenceText, importJson, importYaml, isComplete, openSource } =
    await loadImport();
  const names = options.from ?? [{ format: "genai-prices", path: undefined } as const];
  const sources = names.map((name) => openSource(name, context.cwd));
  const nowMs = Date.now();
  const { vendor, margin: marginPpm, allowFree: allowsFree = false } = options;
  const models = compareModels(config, { sources, vendor, marginPpm, allowsFree, nowMs });
  if (models.length === 0) throw new CliError(`${config.source} has no route to compare`);
  const result = { sources, marginPpm, models };
  const yaml = importYaml(result, nowMs);
  if (options.output !== undefined) writeNew(context.cwd, options.output, yaml);
  const text = differenceText(result);
  return {
    json: importJson(result, yaml),
    text: options.output === undefined ? `${asComment(text)}\n${yaml.trimEnd()}` : text,
    exitCode: isComplete(result) ? 0 : 1,
  };
}

/** Late, so that no other command loads the price list. */
async function loadImport() {
  const [compare, report, yaml, source] = await Promise.all([
    import("./price-import/compare.ts"),
    import("./price-import/report.ts"),
    import("./price-import/yaml.ts"),
    import("./price-import/open-source.ts"),
  ]);
  return { ...compare, ...report, ...yaml, ...source };
}

function checkVendor({ vendors, source }: Config, vendor: string | undefined): void {
  if (vendor === undefined || vendors.has(vendor)) return;
  const have = [...vendors.keys()].join(", ") || "none";
  throw new CliError(`${source} has no vendor ${vendor} (have: ${have})`);
}

/** Never over a file that is there: it could be the configuration. */
function writeNew(cwd: string, path: string, yaml: string): void {
  try {
    writeFileSync(resolve(cwd, path), yaml, { flag: "wx" });
  } catch (error) {
    const reason = failureMessage(error);
    throw new CliError(`cannot write ${path}: ${reason}; name a new file`, { cause: error });
  }
}

/** So that standard output as a whole is YAML, too. */
function asComment(text: string): string {
  return text.replace(/^/gm, "# ");
}
