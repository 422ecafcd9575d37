/** Prices per service tier in `uas.yaml`, and the words of vendors for their tiers (R-TXT-13). */
import { describe, expect, it } from "vitest";
import {
  canonicalPrice,
  parsePrice,
  priceVersion,
} from "../../../src/billing/prices/price-form.ts";
import type { PriceConfig } from "../../../src/config/config.ts";
import {
  isTierUnpriced,
  possiblePrices,
  servedPrice,
  withoutServiceTiers,
} from "../../../src/config/tier-prices.ts";
import { tierOfWord } from "../../../src/core/service-tiers.ts";
import { loadText, problemsOf } from "./support.ts";

const yaml = (more: string, price = 'price: { input: "1", output: "2" }', cost = "") => `version: 1
vendors: { demo: { kind: demo } }
models:
  text:
    type: TEXT
    routes: [{ vendor: demo, model: demo${cost} }]
    max_output_tokens: 100
    ${price}
    ${more}
`;
const usd = 1_000_000_000n;

function pricesOf(text: string): readonly { fromMs: number; price: PriceConfig }[] {
  const model = loadText(text).models.get("text");
  if (model === undefined) throw new Error("no model");
  return model.prices;
}

describe("tiers of a model", () => {
  it("change the price: a unit that a tier leaves out has the model's own price", () => {
    const [first] = pricesOf(
      yaml(
        'tiers: { flex: { input: "0.5" }, priority: { output: "4", tools: { web_search: "0.02" } } }',
        'price: { input: "1", output: "2", tools: { web_search: "0.01" } }',
      ),
    );
    expect(first?.price).toMatchObject({ input: usd, output: 2n * usd, webSearch: usd / 100n });
    const { flex, priority, fast } = first?.price.serviceTiers ?? {};
    expect(flex).toMatchObject({ input: usd / 2n, output: 2n * usd, serviceTier: "flex" });
    expect(priority).toMatchObject({ input: usd, output: 4n * usd, webSearch: usd / 50n });
    expect(fast).toBeUndefined();
  });

  it("never make a long call cheaper than its length, unless they have prices of that length", () => {
    const price =
      'price: { input: "1", output: "2", tiers: [{ above: 100, input: "3", output: "6" }] }';
    const [inherited] = pricesOf(yaml('tiers: { priority: { input: "5", output: "5" } }', price));
    expect(inherited?.price.serviceTiers?.priority?.tiers).toMatchObject([
      { above: 100, input: 5n * usd, output: 6n * usd },
    ]);
    const own = '{ input: "0.5", tiers: [{ above: 200, input: "0.7" }] }';
    const [given] = pricesOf(yaml(`tiers: { flex: ${own} }`, price));
    expect(given?.price.serviceTiers?.flex?.tiers).toMatchObject([
      { above: 200, input: (7n * usd) / 10n, output: undefined },
    ]);
  });

  it("may change at other times than the price", () => {
    const price = `price: [{ input: "1", output: "2" }, { from: 2026-03-01, input: "3", output: "4" }]`;
    const tiers = `tiers: { flex: [{ input: "0.5" }, { from: 2026-02-01, input: "0.4" }] }`;
    const found = pricesOf(yaml(tiers, price)).map(({ fromMs, price: each }) => [
      fromMs,
      each.input,
      each.serviceTiers?.flex?.input,
      each.serviceTiers?.flex?.output,
    ]);
    expect(found).toEqual([
      [-Infinity, usd, usd / 2n, 2n * usd],
      [Date.UTC(2026, 1, 1), usd, (4n * usd) / 10n, 2n * usd],
      [Date.UTC(2026, 2, 1), 3n * usd, (4n * usd) / 10n, 4n * usd],
    ]);
  });

  it("can be those of a route's cost", () => {
    const cost = ', cost: { input: "0.8", output: "1" }, tiers: { flex: { input: "0.4" } }';
    const model = loadText(yaml("", undefined, cost)).models.get("text");
    const [found] = model?.routes[0]?.costs ?? [];
    expect(found?.price.serviceTiers?.flex).toMatchObject({ input: (4n * usd) / 10n, output: usd });
  });

  it.each([
    ["tiers: {}", "none of flex, priority, fast, ultrafast, batch is given"],
    ["tiers: { turbo: { input: 1 } }", "tiers.turbo: unknown key"],
    ["tiers: { flex: {} }", "none of input"],
    ["tiers: { flex: { input: -1 } }", "tiers.flex.input"],
    ["tiers: [{ above: 5, input: 1 }]", "must be a map"],
  ])("are refused where they are in error: %s", (more, message) => {
    expect(problemsOf(yaml(more)).join("\n")).toContain(message);
  });

  it("are stored with the price under one version, and each under its own", () => {
    const [first] = pricesOf(yaml('tiers: { flex: { input: "0.5" }, fast: { output: "9" } }'));
    const price = first?.price ?? {};
    const parsed = parsePrice(JSON.parse(JSON.stringify(canonicalPrice(price))));
    expect(canonicalPrice(parsed)).toEqual(canonicalPrice(price));
    expect(parsed.serviceTiers?.flex?.input).toBe(usd / 2n);
    const plain = pricesOf(yaml(""))[0]?.price ?? price;
    const versions = [plain, price, ...possiblePrices(price, ["flex", "fast"]).slice(1)];
    expect(new Set(versions.map(priceVersion)).size).toBe(4);
    expect(withoutServiceTiers({ prices: [{ fromMs: 0, price }] }).prices[0]?.price).toEqual(plain);
  });
});

it.each([
  ["default", "standard"],
  ["standard", "standard"],
  ["scale", "standard"],
  ["ON_DEMAND", "standard"],
  ["PROVISIONED_THROUGHPUT", "standard"],
  ["ON_DEMAND_FLEX", "flex"],
  ["ON_DEMAND_PRIORITY", "priority"],
  ["Priority", "priority"],
  ["batch", "batch"],
  ["fast", "fast"],
  ["ultrafast", "ultrafast"],
  ["auto", undefined],
  ["ultra", undefined],
  ["", undefined],
])("the vendor's word %j means the tier %s", (word, tier) => {
  expect(tierOfWord(word)).toBe(tier);
});

it("a reply is charged by the tier that it names, and a more expensive tier without a price raises an alarm", () => {
  const [first] = pricesOf(yaml('tiers: { flex: { input: "0.5" } }'));
  const price = first?.price ?? {};
  expect(servedPrice(price, "flex")?.input).toBe(usd / 2n);
  // OpenAI answers `priority` to requests for `fast`.
  const [fast] = pricesOf(yaml('tiers: { fast: { input: "3" } }'));
  expect(servedPrice(fast?.price ?? price, "priority")?.input).toBe(3n * usd);
  expect(servedPrice(price, "default")).toBe(price);
  expect(servedPrice(price, "priority")).toBe(price);
  expect(servedPrice(price, "auto")).toBeUndefined();
  expect(servedPrice(price, undefined)).toBeUndefined();
  expect(
    ["priority", "fast", "turbo", "flex", "batch", "default", "auto", ""].map((word) =>
      isTierUnpriced(price, word),
    ),
  ).toEqual([true, true, true, false, false, false, false, false]);
});
