/** `uas price …`. */
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import {
  PriceState,
  PriceStateSchema,
  type ModelPrices,
  type PriceVersion,
} from "../../gen/uas/billing/v1/price_pb.ts";
import { parseUsd } from "../core/money.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, table } from "./output.ts";
import { addPriceImportCommand } from "./price-import.ts";
import { namedUnits, perText, priceJson, priceText, unitAt } from "./price-json.ts";
import { enumWord, timeText } from "./values.ts";

/** Adds the commands. */
export function addPriceCommands(program: Command, tools: CliTools): void {
  const { context, print } = tools;
  const price = program.command("price").description("look at prices and import them");
  price
    .command("show")
    .description("show a model's prices, past, current and future, and what its vendors take")
    .argument("<model>", "the model's name")
    .action(async (model: string) => {
      print(await withBackend(context, ({ transport }) => showPrice(transport, model)));
    });
  addPriceImportCommand(price, tools);
}

async function showPrice(transport: Transport, modelKey: string): Promise<Output> {
  const client = createClient(BillingService, transport);
  const { prices } = await client.getPrice({ modelKey });
  if (prices === undefined) throw new Error("the answer holds no prices");
  const json = {
    modelKey: prices.modelKey,
    versions: prices.versions.map(versionJson),
    costs: prices.costs.map(({ vendor, model, versions }) => ({
      vendor,
      model,
      versions: versions.map(versionJson),
    })),
  };
  const rows = json.versions.map(({ state, from, loadedAt, version, price }) =>
    [state, from, loadedAt, version, priceText(price)].map(cell),
  );
  const history = table(["STATE", "FROM", "FIRST LOADED", "VERSION", "USD"], rows);
  return { json, text: [...marginText(prices), history].join("\n\n") };
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

/** The current price by unit next to each vendor's cost; empty where no price is in force. */
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
