/**
 * Prices of models, and costs of their routes, which are written alike: the schema of both, and the price of a
 * moment.
 */
import type { z } from "zod";
import type { DatedPrice, PriceConfig } from "./config.ts";
import { moment, positive, usd } from "./scalars.ts";
import { type MapCheck, absent, always, choose, list, mapsOf, section } from "./schema.ts";

/**
 * The price at a moment: the last that has begun. A moment before all of them has the first: only a clock that was
 * set back can ask for it.
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
 * Tells whether a model's price now has a unit, named as the configuration names it. What needs a unit that it has
 * not is refused (R-TXT-10).
 */
export function pricedUnits({
  prices,
}: {
  readonly prices: readonly DatedPrice[];
}): (unit: string) => boolean {
  return (unit) =>
    unit === "cache_write_1h" && priceAt(prices, Date.now()).cacheWrite1h !== undefined;
}

const tokens = [
  "input",
  "cached_input",
  "cache_write",
  "cache_write_1h",
  "output",
  "reasoning",
] as const;
const units = [...tokens, "image", "second", "request"] as const;
type Unit = (typeof units)[number];

/** The units that a model of one type can be charged by, and those of them that it needs. */
interface PriceRule {
  readonly allowed: readonly Unit[];
  /** All of these. */
  readonly needed: readonly Unit[];
  /** At least one of these, where there are any. */
  readonly anyOf: readonly Unit[];
  readonly example: string;
}

const timedRule: PriceRule = {
  allowed: [...tokens, "second", "request"],
  needed: [],
  anyOf: ["second", "request", "output"],
  example: 'price: { second: "0.40" } in USD per second',
};

const rules: ReadonlyMap<string, PriceRule> = new Map([
  [
    "TEXT",
    {
      allowed: [...tokens, "request"],
      needed: ["input", "output"],
      anyOf: [],
      example: 'price: { input: "0.25", output: "2.00" } in USD per 1,000,000 tokens',
    },
  ],
  [
    "IMAGE",
    {
      allowed: [...tokens, "image", "second", "request"],
      needed: [],
      anyOf: ["image", "second", "request", "output"],
      example: 'price: { image: "0.003" } in USD per image',
    },
  ],
  ["VIDEO", timedRule],
  ["AUDIO", timedRule],
]);

/** For a model whose type is in error: any unit passes, so that the rest can still be checked. */
const anyRule: PriceRule = {
  allowed: units,
  needed: [],
  anyOf: [],
  example: rules.get("TEXT")?.example ?? "price",
};

/**
 * The schema of one price, or of a list of prices with the moments from which they count.
 *
 * @param type the model's type as written; any unit passes where it is not known
 */
export function pricesSchema(type: string | undefined) {
  const rule = rules.get(type ?? "") ?? anyRule;
  return choose(Array.isArray, (isList) =>
    isList ? listSchema(rule, type) : oneSchema(rule, type),
  );
}

function oneSchema(rule: PriceRule, type: string | undefined) {
  const options = { fix: `add ${rule.example}`, check: checkUnits(rule) };
  return section(priceShape(rule, type), options).transform((price): DatedPrice[] => [
    { fromMs: -Infinity, price },
  ]);
}

function listSchema(rule: PriceRule, type: string | undefined) {
  const shape = { from: moment().optional(), ...priceShape(rule, type) };
  return list(section(shape, { check: checkUnits(rule) }), "prices")
    .min(1, { error: "name at least one price" })
    .superRefine(checkOrder, { when: always })
    .transform((prices): DatedPrice[] =>
      prices.map(({ from = -Infinity, ...price }) => ({ fromMs: from, price })),
    );
}

function priceShape(rule: PriceRule, type: string | undefined) {
  const notHere = absent(
    `${type} models have no such price; use one of ${rule.allowed.join(", ")}`,
  );
  const priceOf = (unit: Unit) => {
    if (!rule.allowed.includes(unit)) return notHere;
    return rule.needed.includes(unit) ? usd(`add ${rule.example}`) : usd().optional();
  };
  return {
    input: priceOf("input"),
    cached_input: priceOf("cached_input"),
    cache_write: priceOf("cache_write"),
    cache_write_1h: priceOf("cache_write_1h"),
    output: priceOf("output"),
    reasoning: priceOf("reasoning"),
    image: priceOf("image"),
    second: priceOf("second"),
    request: priceOf("request"),
    tiers: tiersSchema.optional(),
  };
}

/** Whether at least one of the units is given that a model needs. */
function checkUnits({ anyOf, example }: PriceRule): MapCheck {
  return (given) => {
    if (anyOf.length === 0 || anyOf.some((unit) => unit in given)) return undefined;
    return `none of ${anyOf.join(", ")} is given: add ${example}`;
  };
}

const tierSchema = section(
  {
    above: positive("add the number of tokens read over which a call has these prices"),
    input: usd().optional(),
    cached_input: usd().optional(),
    cache_write: usd().optional(),
    cache_write_1h: usd().optional(),
    output: usd().optional(),
    reasoning: usd().optional(),
  },
  {
    check: (given) =>
      tokens.some((unit) => unit in given)
        ? undefined
        : `none of ${tokens.join(", ")} is given: add the prices that differ above it`,
  },
);

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

/** @param before the moment of the price before; `undefined`: this is the first */
function orderProblem(fromMs: number, before: number | undefined): string | undefined {
  if (before === undefined) {
    if (fromMs <= Date.now()) return undefined;
    return "no price applies until then: put the current one before it, without from";
  }
  if (before === fromMs) return "the price before applies from the same time; keep one of them";
  if (before > fromMs) return "is earlier than in the price before: sort the prices by time";
  return undefined;
}
