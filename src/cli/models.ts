/** `uas models …`, which needs only the configuration. */
import type { Command } from "commander";
import { CancelBilling } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ImageForm, ModelConfig, PriceConfig, TokenPrices } from "../config/config.ts";
import { cancelBillingWord, modelTypeWord } from "../config/kinds.ts";
import { priceAt } from "../config/price.ts";
import { taskRunMs } from "../core/limits.ts";
import { formatUsd } from "../core/money.ts";
import { serviceTiers } from "../core/service-tiers.ts";
import { configOf } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { table } from "./output.ts";

/** Adds the commands. */
export function addModelsCommands(models: Command, { context, print }: CliTools): void {
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
  const rows = json.map(({ modelKey, type, price, routes }) => [
    modelKey,
    type,
    priceText(price),
    routes.map(({ vendor }) => vendor).join(","),
  ]);
  return { json, text: table(["MODEL", "TYPE", "USD PER 1M TOKENS OR UNIT", "VENDORS"], rows) };
}

function priceText({
  tiers = [],
  images = [],
  serviceTiers: byTier = {},
  ...units
}: PriceJson): string {
  const services = Object.entries(byTier).map(([tier, own]) => `${tier}: ${priceText(own)}`);
  return [
    unitText(units as UnitsJson),
    ...tiers.map(tierText),
    ...images.map(imageText),
    ...services,
  ].join("; ");
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

/** A price: its units, and what depends on length, images and service tier. */
interface PriceJson {
  readonly [unit: string]: unknown;
  readonly tiers?: readonly UnitsJson[];
  readonly images?: readonly (ImageForm & { readonly price: string })[];
  readonly serviceTiers?: Readonly<Record<string, PriceJson>>;
}

/** The units that have a price. */
function priceJson({
  tiers = [],
  images = [],
  serviceTiers: byTier = {},
  ...units
}: PriceConfig): PriceJson {
  const services = serviceTiers.flatMap((tier) => {
    const own = byTier[tier];
    return own === undefined ? [] : [[tier, priceJson(own)] as const];
  });
  const written = tiers.map(({ above, ...tier }): UnitsJson => ({ above, ...unitsJson(tier) }));
  const forms = images.map(({ image, ...form }) => ({ ...form, price: formatUsd(image) }));
  return {
    ...unitsJson(units),
    ...(written.length > 0 && { tiers: written }),
    ...(forms.length > 0 && { images: forms }),
    ...(services.length > 0 && { serviceTiers: Object.fromEntries(services) }),
  };
}

function unitsJson(prices: TokenPrices): UnitsJson {
  const charged: Record<string, string> = {};
  for (const [unit, nanos] of Object.entries(prices) as [string, unknown][]) {
    if (typeof nanos === "bigint") charged[unit] = formatUsd(nanos);
  }
  return charged;
}
