/** `uas models …`, which needs only the configuration. */
import type { Command } from "commander";
import { CancelBilling } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ImageForm, ModelConfig, PriceConfig, TokenPrices } from "../config/config.ts";
import { cancelBillingWord, modelTypeWord } from "../config/kinds.ts";
import { priceAt } from "../config/price.ts";
import { taskRunMs } from "../config/limits.ts";
import { formatUsd } from "../core/money.ts";
import { configOf } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { table } from "./output.ts";

/** Adds the commands. */
export function addModelsCommands(program: Command, { context, print }: CliTools): void {
  const models = program.command("models").description("show the configured models");
  models
    .command("list")
    .description("list the configured models and their prices; needs no database")
    .action(async () => {
      const config = await configOf(context, { unresolved: "placeholder" });
      print(modelList([...config.models.values()]));
    });
}

function modelList(models: readonly ModelConfig[]): Output {
  const json = models.map((model) => ({
    modelKey: model.key,
    name: model.name,
    type: modelTypeWord(model.type),
    price: priceJson(priceAt(model.prices, Date.now())),
    maxOutputTokens: model.maxOutputTokens,
    deadlineMs: model.deadlineMs ?? taskRunMs,
    cancelBilling: cancelBillingWord(model.cancelBilling ?? CancelBilling.NONE),
    routes: model.routes.map(({ vendor, model: name }) => ({ vendor, model: name })),
  }));
  const rows = json.map(
    ({ modelKey, type, price: { tiers = [], images = [], ...price }, routes }) => [
      modelKey,
      type,
      [unitText(price), ...tiers.map(tierText), ...images.map(imageText)].join("; "),
      routes.map(({ vendor }) => vendor).join(","),
    ],
  );
  return { json, text: table(["MODEL", "TYPE", "USD PER 1M TOKENS OR UNIT", "VENDORS"], rows) };
}

function unitText(price: UnitsJson): string {
  return Object.entries(price)
    .map(([unit, usd]) => `${unit} ${usd}`)
    .join(", ");
}

function tierText({ above, ...price }: UnitsJson): string {
  return `above ${above} tokens: ${unitText(price)}`;
}

/** The price of images of one form: `1024x1024 high: 0.25`. */
export function imageText({
  size = "",
  quality = "",
  price,
}: ImageForm & { readonly price: string }): string {
  const form = [size, quality].filter((word) => word !== "").join(" ");
  return `${form || "other images"}: ${price}`;
}

/** Prices in USD; in a tier also the token threshold. */
type UnitsJson = Readonly<Record<string, string | number>>;

/** The units that have a price. */
function priceJson({ tiers = [], images = [], ...units }: PriceConfig) {
  const written = tiers.map(({ above, ...tier }): UnitsJson => ({ above, ...unitsJson(tier) }));
  const forms = images.map(({ image, ...form }) => ({ ...form, price: formatUsd(image) }));
  return {
    ...unitsJson(units),
    ...(written.length > 0 && { tiers: written }),
    ...(forms.length > 0 && { images: forms }),
  };
}

function unitsJson(prices: TokenPrices): UnitsJson {
  const charged: Record<string, string> = {};
  for (const [unit, nanos] of Object.entries(prices) as [string, bigint | undefined][]) {
    if (nanos !== undefined) charged[unit] = formatUsd(nanos);
  }
  return charged;
}
