/** `uas init`: writes a first uas.yaml with vendors, their models and prices. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { command } from "../core/package.ts";
import { failureMessage } from "../core/error-words.ts";
import { hint } from "../core/suggest.ts";
import { configOf } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import { credentialName, credentialNames } from "./init-credentials.ts";
import { configText, vendorsText } from "./init-text.ts";
import { namesAtVendor } from "./models-import.ts";
import { marginArgument, sourceName } from "./price-import/arguments.ts";
import type { MarginPpm } from "./price-import/decimal.ts";
import type { NewModels, NewModelsOptions } from "./price-import/new-models.ts";
import type { SourceName } from "./price-import/open-source.ts";

interface InitOptions {
  readonly vendor?: readonly string[];
  readonly margin?: MarginPpm;
  readonly from?: SourceName;
  readonly output: string;
  readonly force?: boolean;
}

/** The margin if none is given. */
const marginDefault = "20%";

/** Adds options and action to the command. */
export function addInit(init: Command, { context, print }: CliTools): void {
  init
    .option(
      "--vendor <preset>",
      "a known vendor (`uas vendor presets`); repeat it for several (default: those whose key is in the environment)",
      vendorArgument,
    )
    .option(
      "--margin <percent>",
      `compute prices: the cost and this percentage of it (default: ${marginDefault})`,
      marginArgument,
    )
    .option(
      "--from <list>",
      "genai-prices (comes with the gateway), a downloaded file, or models.dev:FILE",
      sourceName,
    )
    .option("--output <file>", "the file to write", "uas.yaml")
    .option("--force", "replace the file if it exists")
    .action(async (options: InitOptions) => {
      print(await writeFirst(context, options));
    });
}

function vendorArgument(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(/[\s,]+/).filter((name) => name !== "")];
}

async function writeFirst(context: CliContext, options: InitOptions): Promise<Output> {
  const names = await chosenVendors(context, options);
  const marginPpm = options.margin ?? marginArgument(await askMargin(context, options));
  const { openSource } = await loadImport();
  const source = openSource(options.from ?? noList, context.cwd);
  const found: NewModels[] = [];
  for (const name of names) found.push(await modelsOf(context, name, { source, marginPpm }));
  const content = configText(names, found);
  // The file is correct before it is written.
  const document = { source: options.output, content };
  const config = await configOf(context, { document, unresolved: "placeholder" });
  write(context, options, content);
  return initOutput(context, { names, models: config.models.size, output: options.output });
}

const noList = { format: "genai-prices", path: undefined } as const;

/** Late, so that no other command loads the price list. */
async function loadImport() {
  const [models, source] = await Promise.all([
    import("./price-import/new-models.ts"),
    import("./price-import/open-source.ts"),
  ]);
  return { ...models, ...source };
}

/** The given vendors, else the answer, else those whose key is in the environment. */
async function chosenVendors(
  context: CliContext,
  { vendor: given }: InitOptions,
): Promise<readonly string[]> {
  const present = Object.keys(credentialNames).filter((name) => isSet(context, name));
  const names = given ?? (await askVendors(context, present));
  const unknown = names.find((name) => credentialNames[name] === undefined);
  if (unknown !== undefined) {
    const known = Object.keys(credentialNames);
    throw new CliError(`no vendor ${unknown}${hint(unknown, known)} (have: ${known.join(", ")})`);
  }
  if (names.length > 0) return [...new Set(names)];
  throw new CliError(
    "no vendor: write --vendor openai, or set the variable of a key, such as OPENAI_API_KEY",
  );
}

async function askVendors({ ask }: CliContext, present: readonly string[]) {
  if (ask === undefined) return present;
  const found = present.join(" ");
  const answer = await ask(
    `Vendors, of ${Object.keys(credentialNames).join(", ")}${found === "" ? "" : ` [${found}]`}: `,
  );
  return answer.trim() === "" ? present : vendorArgument(answer);
}

async function askMargin({ ask }: CliContext, { vendor }: InitOptions): Promise<string> {
  if (ask === undefined || vendor !== undefined) return marginDefault;
  const answer = await ask(`Margin on what vendors charge [${marginDefault}]: `);
  return answer.trim() === "" ? marginDefault : answer.trim();
}

/** The models of one vendor. Their names come from it if its key is set. */
async function modelsOf(
  context: CliContext,
  name: string,
  options: Omit<NewModelsOptions, "names" | "nowMs">,
): Promise<NewModels> {
  const { newModels } = await loadImport();
  const document = { source: name, content: `${vendorsText([name])}models: {}\n` };
  const config = await configOf(context, { document, unresolved: "placeholder" });
  const vendor = config.vendors.get(name);
  if (vendor === undefined) throw new Error(`the preset ${name} was refused`);
  const names = isSet(context, name) ? await namesAtVendor(context, config, vendor) : undefined;
  return newModels(vendor, { ...options, names, nowMs: Date.now() });
}

/** Whether the environment has the key of a vendor. */
function isSet({ env }: CliContext, name: string): boolean {
  return (env[credentialName(name)] ?? "") !== "";
}

function write({ cwd }: CliContext, { output, force = false }: InitOptions, text: string): void {
  try {
    writeFileSync(resolve(cwd, output), text, { flag: force ? "w" : "wx" });
  } catch (error) {
    const isThere = error instanceof Error && "code" in error && error.code === "EEXIST";
    if (isThere)
      throw new CliError(`${output} exists: --output names another file, --force replaces it`);
    throw new CliError(`cannot write ${output}: ${failureMessage(error)}`, { cause: error });
  }
}

interface Written {
  readonly names: readonly string[];
  readonly models: number;
  readonly output: string;
}

function initOutput(context: CliContext, { names, models, output }: Written): Output {
  const unset = names.filter((name) => !isSet(context, name)).map(credentialName);
  const file = output === "uas.yaml" ? "" : ` ${output}`;
  const next = `${command} check --probe${file}`;
  const text = [
    `${output}: ${names.length} ${names.length === 1 ? "vendor" : "vendors"}, ${models} models`,
    ...unset.map((name) => `set ${name} to the vendor's key`),
    `then run: ${next}, and ${command} serve`,
  ];
  return { json: { output, vendors: names, models, unset, next }, text: text.join("\n") };
}
