/** `uas price …`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import {
  type ModelPrices,
  PriceState,
  PriceStateSchema,
  type PriceVersion,
} from "../../gen/uas/billing/v1/price_pb.ts";
import { ConfigService } from "../../gen/uas/config/v1/config_service_pb.ts";
import type { Config } from "../config/config.ts";
import { priceMessage } from "../config/price-message.ts";
import { parseUsd } from "../core/money.ts";
import { configOf, type OpenBackend, warn, withBackend } from "./backend.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { CliError } from "./failure.ts";
import { cell, table } from "./output.ts";
import type { MarginPpm } from "./price-import/decimal.ts";
import { listOption, marginArgument, sourceArgument, writeNew } from "./price-import/arguments.ts";
import type { SourceName } from "./price-import/open-source.ts";
import { upcoming } from "../config/price-dates.ts";
import { namedUnits, perText, type PriceJson, priceJson, priceText, unitAt } from "./price-json.ts";
import { comparedFile } from "./uas-yaml.ts";
import { enumWord, timeText } from "./values.ts";

/** Adds the commands. */
export function addPriceCommands(price: Command, tools: CliTools): void {
  const { context, print } = tools;
  price
    .command("show")
    .description("show a model's past, current and future prices, and its vendor costs")
    .argument("<model>", "the model's name")
    .action(async (model: string) => {
      print(await withBackend(context, (backend) => showPrice(context, backend, model)));
    });
  addPriceImportCommand(price, tools);
}

async function showPrice(
  context: CliContext,
  { transport, isRunning }: OpenBackend,
  modelKey: string,
): Promise<Output> {
  const client = createClient(BillingService, transport);
  const { prices } = await client.getPrice({ modelKey });
  if (prices === undefined) throw new Error("the answer has no prices");
  if (!isRunning) await warnOfFile(context, transport);
  const file = isRunning ? await comparedFile(context, transport) : undefined;
  const notInForce = file === undefined ? [] : missing(prices, file);
  const json = {
    modelKey: prices.modelKey,
    notInForce,
    versions: prices.versions.map(versionJson),
    costs: prices.costs.map(({ vendor, model, versions }) => ({
      vendor,
      model,
      versions: versions.map(versionJson),
    })),
  };
  const loaded = json.versions.map(({ state, from, loadedAt, version, price }) =>
    [state, from, loadedAt, version, priceText(price)].map(cell),
  );
  const written = notInForce.map(({ from, price }) =>
    ["not in force", from, null, null, priceText(price)].map(cell),
  );
  const rows = [...loaded, ...written];
  const history = table(["STATE", "FROM", "FIRST LOADED", "VERSION", "USD"], rows);
  return { json, text: [...marginText(prices), history].join("\n\n") };
}

/** Warns if the prices are those of a file. A revision is in force in every gateway. */
async function warnOfFile(context: CliContext, transport: Transport): Promise<void> {
  const { config } = await createClient(ConfigService, transport).getConfig({});
  if (config === undefined || config.revision > 0n) return;
  const text = `no gateway runs on this data folder: prices are those of ${config.source}, which a gateway elsewhere may not have loaded`;
  warn(context, text);
}

/** A price of the file that no gateway here has loaded. `from` is null for the present one. */
interface NotInForce {
  readonly from: string | null;
  readonly price: PriceJson;
}

/** The present and future prices of the file that are not among those in force. */
function missing({ modelKey, versions }: ModelPrices, file: Config): readonly NotInForce[] {
  const nowMs = Date.now();
  const model = file.models.get(modelKey);
  const written = (model === undefined ? [] : upcoming(model.prices, nowMs)).map((dated) => ({
    from: dated.fromMs > nowMs ? new Date(dated.fromMs).toISOString() : null,
    price: priceJson(priceMessage(dated.price)),
  }));
  const loaded = versions
    .filter(({ state }) => state !== PriceState.PAST)
    .map(({ state, fromTime, price }) => ({
      from: state === PriceState.FUTURE ? timeText(fromTime) : null,
      price: priceJson(price),
    }));
  const known = new Set(loaded.map((each) => JSON.stringify(each)));
  return written.filter((each) => !known.has(JSON.stringify(each)));
}

function versionJson({ version, state, fromTime, loadTime, price }: PriceVersion) {
  return {
    version,
    state: enumWord(PriceStateSchema, state),
    from: timeText(fromTime),
    loadedAt: timeText(loadTime),
    price: priceJson(price),
  };
}

/** The current price by unit next to each vendor's cost; empty if no price is in force. */
function marginText(prices: ModelPrices): string[] {
  const now = current(prices.versions);
  if (now === undefined) return [];
  const price = priceJson(now.price);
  const costs = prices.costs.map(({ vendor, model, versions }) => ({
    head: `${vendor} ${model}`,
    cost: priceJson(current(versions)?.price),
  }));
  const rows = namedUnits([price, ...costs.map(({ cost }) => cost)]).map(({ unit, above }) => {
    const usd = unitAt(price, unit, above);
    return [
      above === 0 ? unit : `${unit} above ${above}`,
      perText(unit),
      cell(usd),
      ...costs.map(({ cost }) => costCell(usd, unitAt(cost, unit, above))),
    ];
  });
  return [table(["UNIT", "PER", "PRICE", ...costs.map(({ head }) => head)], rows)];
}

function current(versions: readonly PriceVersion[]): PriceVersion | undefined {
  return versions.find(({ state }) => state === PriceState.CURRENT);
}

/** A vendor's cost for a unit, and the remaining margin. */
function costCell(price = "0", cost: string | undefined): string {
  if (cost === undefined) return "-";
  const [priceNanos = 0n, costNanos = 0n] = [parseUsd(price), parseUsd(cost)];
  if (priceNanos === 0n) return cost;
  const marginPercent = Number(((priceNanos - costNanos) * 1_000n) / priceNanos) / 10;
  return `${cost} (${marginPercent} % left)`;
}

interface ImportOptions {
  readonly from?: readonly SourceName[];
  readonly vendor?: string;
  readonly margin?: MarginPpm;
  readonly allowFree?: boolean;
  readonly output?: string;
}

/** Adds the command to `uas price`. */
function addPriceImportCommand(price: Command, { context, print }: CliTools): void {
  price
    .command("import")
    .description("compare costs and prices with a price list, and write the differences as YAML")
    .option(...listOption, sourceArgument)
    .option("--vendor <vendor>", "only routes to this vendor of the configuration")
    .option(
      "--margin <percent>",
      "also compute prices: the cost and this percentage of it, such as 20%",
      marginArgument,
    )
    .option("--allow-free", "also import prices of 0")
    .option("--output <file>", "write the YAML to a new file instead of standard output")
    .action(async (options: ImportOptions) => {
      print(await importPrices(context, options));
    });
}

async function importPrices(context: CliContext, options: ImportOptions): Promise<Output> {
  const config = await configOf(context, { unresolved: "placeholder", needsPrices: false });
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
    import("./price-import/report-yaml.ts"),
    import("./price-import/open-source.ts"),
  ]);
  return { ...compare, ...report, ...yaml, ...source };
}

function checkVendor({ vendors, source }: Config, vendor: string | undefined): void {
  if (vendor === undefined || vendors.has(vendor)) return;
  const have = [...vendors.keys()].join(", ") || "none";
  throw new CliError(`${source} has no vendor ${vendor} (have: ${have})`);
}

/** So that standard output as a whole is YAML, too. */
function asComment(text: string): string {
  return text.replace(/^/gm, "# ");
}
