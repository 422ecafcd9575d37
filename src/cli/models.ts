/** `uas models …`: from the configuration alone. */
import type { Command } from "commander";
import type { ModelConfig, PriceConfig } from "../config/config.ts";
import { modelTypeWord } from "../config/kinds.ts";
import { formatUsd } from "../money.ts";
import { configOf } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { table } from "./output.ts";

/** Adds the commands. */
export function addModelsCommands(program: Command, { context, print }: CliTools): void {
  const models = program.command("models").description("look at the models");
  models
    .command("list")
    .description("list the configured models and their prices; needs no database")
    .action(async () => {
      const config = await configOf(context, { unresolved: "placeholder" });
      print(modelList([...config.models.values()]));
    });
}

function modelList(models: readonly ModelConfig[]): Output {
  const json = models.map(({ key, name, type, price, maxOutputTokens, routes }) => ({
    modelKey: key,
    name,
    type: modelTypeWord(type),
    price: priceJson(price),
    maxOutputTokens,
    routes,
  }));
  const rows = json.map((model) => [
    model.modelKey,
    model.type,
    Object.entries(model.price)
      .map(([unit, usd]) => `${unit} ${usd}`)
      .join(", "),
    model.routes.map(({ vendor }) => vendor).join(","),
  ]);
  return { json, text: table(["MODEL", "TYPE", "USD PER 1M TOKENS OR UNIT", "VENDORS"], rows) };
}

/** Only the units that are charged. */
function priceJson(price: PriceConfig): Record<string, string> {
  const charged: Record<string, string> = {};
  for (const [unit, nanos] of Object.entries(price) as [string, bigint | undefined][]) {
    if (nanos !== undefined) charged[unit] = formatUsd(nanos);
  }
  return charged;
}
