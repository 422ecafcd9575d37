/**
 * Prices of models, and costs of their routes, which are written alike: the schema of both, and the
 * price of a moment.
 */
import type { z } from "zod";
import type { DatedPrice, ImageForm, ImagePrice, PriceConfig, PriceTier } from "./config.ts";
import type { ServiceTier } from "../core/service-tiers.ts";
import { modelTypes } from "./kinds.ts";
import { type PriceUnit, priceUnits, tokenUnits, unitsOfType } from "./price-units.ts";
import { imageWord, moment, positive, usd } from "./scalars.ts";
import { type MapCheck, absent, always, list, mapsOf, oneOrList, section } from "./schema.ts";

/**
 * The price at a moment: the last that has begun. A moment before all of them has the first: only a
 * clock that was set back can ask for it.
 *
 * @param prices by time, at least one
 * @param timeMs milliseconds since 1970
 */
export function priceAt(prices: readonly DatedPrice[], timeMs: number): PriceConfig {
  let at = prices.length - 1;
  while (at > 0 && (prices[at]?.fromMs ?? 0) > timeMs) at--;
  const dated = prices[at];
  if (dated === undefined) throw new RangeError("a model without a price");
  return dated.price;
}

/**
 * The price of images of one form: `image` is its price, and there is no table. Where the vendor
 * chooses size or quality, it is the highest price that the images can have.
 *
 * @returns `undefined`: the table has no price for them
 */
export function imagePriceOf(price: PriceConfig, form: ImageForm): PriceConfig | undefined {
  const { images, ...plain } = price;
  if (images === undefined) return price;
  const possible = images.filter((row, index) => {
    if (!canBe(form.size, row.size) || !canBe(form.quality, row.quality)) return false;
    const chosen = { size: form.size ?? row.size, quality: form.quality ?? row.quality };
    return !isCovered(chosen, images.slice(0, index));
  });
  return possible.length === 0 ? undefined : { ...plain, image: highestOf(possible) };
}

/** All that {@link imagePriceOf} can return for a price. */
export function imagePricesOf(price: PriceConfig): readonly PriceConfig[] {
  const { images = [], ...plain } = price;
  return [...new Set(images.map(({ image }) => image))].map((image) => ({ ...plain, image }));
}

function canBe(asked: string | undefined, priced: string | undefined): boolean {
  return asked === undefined || priced === undefined || asked === priced;
}

/** Whether one of the rows fits all images of a form. */
function isCovered(form: ImageForm, rows: readonly ImageForm[]): boolean {
  return rows.some((row) => isAlways(form.size, row.size) && isAlways(form.quality, row.quality));
}

function isAlways(asked: string | undefined, priced: string | undefined): boolean {
  return priced === undefined || asked === priced;
}

/** The word of a size or quality as prices have it; undefined if the vendor chooses. */
export function imageWordOf(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const word = value
    .trim()
    .toLowerCase()
    .replace(/^(\d+)[*×](\d+)$/, "$1x$2");
  return word === "" || word === "auto" ? undefined : word;
}

/**
 * Returns a function that checks if a model's price at a moment has a unit, by its name in the
 * configuration. It also accepts `tiers` for prices of long inputs, and `tiers.flex` for a service
 * tier. Requests that need a unit without a price are refused (R-TXT-10).
 *
 * @param timeMs milliseconds since 1970
 */
export function pricedUnits(
  { prices }: { readonly prices: readonly DatedPrice[] },
  timeMs: number,
): (unit: string) => boolean {
  return (name) => {
    if (name === "tiers") return (priceAt(prices, timeMs).tiers ?? []).length > 0;
    const [, tier] = /^tiers\.(.*)$/.exec(name) ?? [];
    if (tier !== undefined) {
      return priceAt(prices, timeMs).serviceTiers?.[tier as ServiceTier] !== undefined;
    }
    const unit = priceUnits.find((each) => each.name === name);
    return unit !== undefined && priceAt(prices, timeMs)[unit.key] !== undefined;
  };
}

/** The units that a model of one type needs. */
interface PriceRule {
  /** All of these. */
  readonly needed: readonly string[];
  /** At least one of these, if there are any. */
  readonly anyOf: readonly string[];
  readonly example: string;
}

const timedRule: PriceRule = {
  needed: [],
  anyOf: ["second", "request", "output"],
  example: 'price: { second: "0.40" } in USD per second',
};

const rules: ReadonlyMap<string, PriceRule> = new Map([
  [
    "TEXT",
    {
      needed: ["input", "output"],
      anyOf: [],
      example: 'price: { input: "0.25", output: "2.00" } in USD per 1,000,000 tokens',
    },
  ],
  [
    "IMAGE",
    {
      needed: [],
      anyOf: ["image", "second", "request", "output"],
      example: 'price: { image: "0.003" } in USD per image',
    },
  ],
  ["VIDEO", timedRule],
  ["AUDIO", { ...timedRule, anyOf: ["second", "character", "request", "output"] }],
  [
    "EMBEDDING",
    {
      needed: [],
      anyOf: ["input", "request"],
      example: 'price: { input: "0.02" } in USD per 1,000,000 tokens',
    },
  ],
  [
    "RERANK",
    {
      needed: [],
      anyOf: ["search", "input", "request"],
      example: 'price: { search: "0.002" } in USD per search',
    },
  ],
  [
    "MODERATION",
    {
      needed: [],
      anyOf: ["input", "request"],
      example: 'price: { input: "0" } for moderation free of charge',
    },
  ],
]);

/** For a model whose type is in error: any unit passes, so that the rest can still be checked. */
const anyRule: PriceRule = {
  needed: [],
  anyOf: [],
  example: rules.get("TEXT")?.example ?? "price",
};

/**
 * The schema of one price, or of a list of prices with their start times.
 *
 * @param type the model's type as written; any unit passes if the type is unknown
 * @param key the key that has the prices, for messages
 */
export function pricesSchema(type: string | undefined, key: "price" | "cost" = "price") {
  const { example, ...rule } = ruleOf(type);
  return schemaOf(type, { ...rule, example: example.replace("price:", `${key}:`) });
}

/** The schema of prices. */
export type PricesSchema = ReturnType<typeof pricesSchema>;

/**
 * The schema of changes of a price, as {@link pricesSchema}: no unit is required, but one must be
 * given.
 */
export function priceChangesSchema(type: string | undefined): PricesSchema {
  const anyOf = unitsOf(type).map(({ name }) => name.replace(/\..*/, ""));
  return schemaOf(type, { needed: [], anyOf, example: ruleOf(type).example });
}

function schemaOf(type: string | undefined, rule: PriceRule) {
  return oneOrList(
    () => oneSchema(type, rule),
    () => listSchema(type, rule),
  );
}

/**
 * Returns a price with changes. A long call has the changed price of its length if there is one,
 * else the higher of the changed price and the length's unchanged price.
 */
export function overlayPrice(price: PriceConfig, changes: PriceConfig): PriceConfig {
  const units = priceUnits.map(({ key }) => [key, changes[key] ?? price[key]]);
  const tiers =
    changes.tiers ??
    price.tiers?.map((tier): PriceTier => {
      const dearer = tokenUnits.map(({ key }) => [key, dearerOf(tier[key], changes[key])]);
      return { ...tier, ...Object.fromEntries(dearer) };
    });
  return { ...price, ...Object.fromEntries(units), tiers };
}

function dearerOf(price: bigint | undefined, changed: bigint | undefined): bigint | undefined {
  if (price === undefined || changed === undefined) return price;
  return price > changed ? price : changed;
}

function oneSchema(type: string | undefined, rule: PriceRule) {
  const options = { fix: `add ${rule.example}`, check: checkUnits(rule), about: priceKeys };
  return section(priceShape(type, rule), options)
    .transform((written): DatedPrice[] => [{ fromMs: -Infinity, price: priceOf(written) }])
    .meta(requiredUnits(rule));
}

function listSchema(type: string | undefined, rule: PriceRule) {
  const shape = { from: moment().optional(), ...priceShape(type, rule) };
  const options = { check: checkUnits(rule), about: priceKeys };
  return list(section(shape, options).meta(requiredUnits(rule)), "prices")
    .min(1, { error: "name at least one price" })
    .superRefine(checkOrder, { when: always })
    .transform((prices): DatedPrice[] =>
      prices.map((written) => ({ fromMs: written.from ?? -Infinity, price: priceOf(written) })),
    );
}

/** In JSON Schema: one of these units is required. */
function requiredUnits({ anyOf }: PriceRule) {
  return anyOf.length === 0 ? {} : { anyOf: anyOf.map((unit) => ({ required: [unit] })) };
}

function ruleOf(type: string | undefined): PriceRule {
  return rules.get(type ?? "") ?? anyRule;
}

/** The units of a model type; all if the type is in error. */
function unitsOf(type: string | undefined): readonly PriceUnit[] {
  const known = modelTypes.get(type ?? "");
  return known === undefined ? priceUnits : unitsOfType(known);
}

/** The schemas of the units, by their names in the file. Tools have a separate map. */
function priceShape(type: string | undefined, { needed, example }: PriceRule): z.ZodRawShape {
  const allowed = unitsOf(type);
  const names = [...new Set(allowed.map(({ name }) => name.replace(/\..*/, "")))];
  const notHere = absent(`${type} models have no such price; use one of ${names.join(", ")}`);
  const units = priceUnits
    .filter((unit) => !isTool(unit))
    .map((unit) => {
      if (!allowed.includes(unit)) return [unit.name, notHere];
      if (unit.key === "image") return [unit.name, imageSchema.optional()];
      return [unit.name, needed.includes(unit.name) ? usd(`add ${example}`) : usd().optional()];
    });
  return {
    ...(Object.fromEntries(units) as z.ZodRawShape),
    tools: allowed.some(isTool) ? toolsSchema.optional() : notHere,
    tiers: tiersSchema.optional(),
  };
}

const imageKeys = {
  size: "Size as the vendor writes it. Default: any.",
  quality: "Quality as the vendor writes it. Default: any.",
  price: "US dollars per image.",
};

const imageRow = section(
  {
    size: imageWord().optional(),
    quality: imageWord().optional(),
    price: usd("add the price in USD per image"),
  },
  { about: imageKeys },
);

/** One price, or a table of them. */
const imageSchema = oneOrList(
  () => usd(),
  () => imageTable,
);

const imageTable = list(imageRow, "prices { size, quality, price }")
  .min(1, { error: "name at least one price" })
  .superRefine(checkImageRows, { when: always })
  .transform((rows): readonly ImagePrice[] =>
    rows.map(({ size, quality, price }) => ({
      size: imageWordOf(size),
      quality: imageWordOf(quality),
      image: price,
    })),
  );

/** A row that comes after one which fits all its images would never count. */
function checkImageRows(rows: unknown, context: z.core.$RefinementCtx): void {
  const before: ImageForm[] = [];
  for (const [index, row] of mapsOf(rows)) {
    const form = { size: imageWordOf(row["size"]), quality: imageWordOf(row["quality"]) };
    const message =
      "never applies: an earlier row matches all these images; put the more specific row first";
    if (isCovered(form, before)) context.addIssue({ code: "custom", path: [index], message });
    before.push(form);
  }
}

const toolPrefix = "tools.";

function isTool({ name }: PriceUnit): boolean {
  return name.startsWith(toolPrefix);
}

const toolShape: z.ZodRawShape = Object.fromEntries(
  priceUnits
    .filter(isTool)
    .map(({ name }) => [name.slice(toolPrefix.length), usd().optional()] as const),
);

const unitKeys = Object.fromEntries(
  priceUnits.map(({ name, per, counts, whole }): [string, string] => [
    name,
    `US dollars per ${per}: ${counts}.${whole === undefined ? "" : ` Default: the price of \`${whole}\`.`}`,
  ]),
);

const priceKeys = {
  ...unitKeys,
  from: "When the price begins; only the first price of a list may leave it out.",
  image: "US dollars per image: one price, or a [table](uas-yaml.md#images-by-size-and-quality).",
  tools: "`TEXT`: prices of tools that the vendor runs.",
  tiers:
    "Prices of whole calls with many input tokens, cached and cache-written ones included. A unit that is left out has the price of the model.",
};

const toolsSchema = section(toolShape, {
  about: Object.fromEntries(
    priceUnits.filter(isTool).map(({ name }) => [name.slice(toolPrefix.length), unitKeys[name]]),
  ),
  check: (given) =>
    Object.keys(given).length > 0
      ? undefined
      : `none of ${Object.keys(toolShape).join(", ")} is given: add one in USD per call, or leave the key out`,
});

/** The checked values of a section: every price is in nano-USD. */
interface WrittenPrice {
  readonly tools?: unknown;
  readonly tiers?: unknown;
  readonly [unit: string]: unknown;
}

function priceOf({ tools, tiers, ...written }: WrittenPrice): PriceConfig {
  const values = { ...written, ...(tools as WrittenPrice | undefined) };
  // Every unit is set, `undefined` if the file lacks it: objects of one shape are fast to read.
  const units = priceUnits.map(({ key }) => [key, values[key]]);
  const price = { ...Object.fromEntries(units), tiers } as PriceConfig;
  const { image } = values;
  if (!Array.isArray(image)) return price;
  const images = image as readonly ImagePrice[];
  return { ...price, image: highestOf(images), images };
}

function highestOf(rows: readonly ImagePrice[]): bigint {
  return rows.reduce((most, { image }) => (image > most ? image : most), 0n);
}

/** Whether at least one of the units is given that a model needs. */
function checkUnits({ anyOf, example }: PriceRule): MapCheck {
  return (given) => {
    if (anyOf.length === 0 || anyOf.some((unit) => unit in given)) return undefined;
    return `none of ${anyOf.join(", ")} is given: add ${example}`;
  };
}

const tokenNames = tokenUnits.map(({ name }) => name);

const tierShape: z.ZodRawShape = {
  above: positive("add the number of input tokens above which these prices apply"),
  ...Object.fromEntries(tokenNames.map((name) => [name, usd().optional()])),
};

const tierSchema = section(tierShape, {
  about: { ...unitKeys, above: "Applies to calls with more input tokens than this." },
  check: (given) =>
    tokenNames.some((name) => name in given)
      ? undefined
      : `none of ${tokenNames.join(", ")} is given: add the prices that differ above it`,
});

const tiersSchema = list(tierSchema, "tiers { above, input, output, … }")
  .min(1, { error: "name at least one tier, or leave the key out" })
  .superRefine(checkTiers, { when: always });

function checkTiers(tiers: unknown, context: z.core.$RefinementCtx): void {
  let before = 0;
  for (const [index, { above }] of mapsOf(tiers)) {
    if (typeof above !== "number") continue;
    const message = `must be more than in the tier before, ${before}`;
    if (above <= before) context.addIssue({ code: "custom", path: [index, "above"], message });
    before = above;
  }
}

function checkOrder(prices: unknown, context: z.core.$RefinementCtx): void {
  let before: number | undefined;
  for (const [index, { from }] of mapsOf(prices)) {
    if (from === undefined && before !== undefined) {
      const message = "from is missing: only the first price of a list may leave it out";
      context.addIssue({ code: "custom", path: [index], message });
    }
    const fromMs = from ?? before ?? -Infinity;
    // Otherwise the moment itself is in error.
    if (typeof fromMs !== "number") continue;
    const message = from === undefined ? undefined : orderProblem(fromMs, before);
    if (message) context.addIssue({ code: "custom", path: [index, "from"], message });
    before = fromMs;
  }
}

/** @param before the moment of the price before; undefined if this is the first */
function orderProblem(fromMs: number, before: number | undefined): string | undefined {
  if (before === undefined) return undefined;
  if (before === fromMs) return "the price before applies from the same time; keep one of them";
  if (before > fromMs) return "is earlier than in the price before: sort the prices by time";
  return undefined;
}
