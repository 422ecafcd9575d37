import { describe, expect, it } from "vitest";
import { oneModel, runIn } from "./price-world.ts";

/** The warnings of `uas check`. */
async function warnings(cost: string, price: string, type = "TEXT"): Promise<readonly string[]> {
  const yaml = oneModel(`, cost: ${cost}`, price, type);
  const { code, out } = await runIn({ "uas.yaml": yaml }, "check", "--json");
  expect(code).toBe(0);
  return (JSON.parse(out) as { warnings: readonly string[] }).warnings;
}

const fix = "raise the price or correct the cost";

describe("uas check warns of a model whose price is below what a route costs", () => {
  it("names the place, the unit, both amounts and what to do", async () => {
    expect(
      await warnings('{ input: "0.25", output: "2.01" }', '{ input: "0.25", output: "2" }'),
    ).toEqual([
      `uas.yaml:5 models.m: the price of output, 2, is below the cost of route openai acme-1, 2.01: ${fix}`,
    ]);
  });

  it("a price below cost is a warning on standard error, and the file is accepted", async () => {
    const yaml = oneModel(', cost: { input: "1", output: "10" }');
    const { code, out, err } = await runIn({ "uas.yaml": yaml }, "check");
    expect({ code, out }).toEqual({ code: 0, out: "ok: 1 vendor, 1 model\n" });
    expect(err).toMatch(/^warning: uas\.yaml:5 models\.m: the price of output, 9, is below .*\n$/);
  });

  it("a unit that is left out is compared at the cost of the unit that contains it", async () => {
    expect(
      await warnings('{ input: "1", output: "1", reasoning: "3" }', '{ input: "1", output: "2" }'),
    ).toEqual([
      `uas.yaml:5 models.m: the price of reasoning, 2, is below the cost of route openai acme-1, 3: ${fix}`,
    ]);
  });

  it("a price below cost is also found in the tier of long calls and in prices that begin later", async () => {
    const cost =
      '[{ input: "1", output: "1", tiers: [{ above: 200000, input: "2" }] }, { from: "2999-01-01", input: "5", output: "1" }]';
    expect(await warnings(cost, '{ input: "1.5", output: "1" }')).toEqual([
      `uas.yaml:5 models.m: the price of input above 200000 tokens, 1.5, is below the cost of route openai acme-1, 2: ${fix}`,
      `uas.yaml:5 models.m: from 2999-01-01 the price of input, 1.5, is below the cost of route openai acme-1, 5: ${fix}`,
    ]);
  });

  it("a price below cost is also found in a service tier that both have prices for", async () => {
    const price = `{ input: "2", output: "2" }
    tiers: { flex: { input: "0.4" }, priority: { output: "5" } }`;
    const cost = '{ input: "1", output: "1" }, tiers: { flex: { input: "0.5" } }';
    expect(await warnings(cost, price)).toEqual([
      `uas.yaml:5 models.m: the price of input at the tier flex, 0.4, is below the cost of route openai acme-1, 0.5: ${fix}`,
    ]);
  });

  it("a loss is shown once if the first price and the first cost begin later", async () => {
    const dated = (output: string): string =>
      `[{ from: "2999-01-01", input: "1", output: "${output}" }]`;
    expect(await warnings(dated("2"), dated("1"))).toEqual([
      expect.stringContaining("routes[0].cost[0].from: is in the future by this machine's clock"),
      expect.stringContaining("price[0].from: is in the future by this machine's clock"),
      `uas.yaml:5 models.m: the price of output, 1, is below the cost of route openai acme-1, 2: ${fix}`,
    ]);
  });

  it.each([
    [
      "prices that cover the cost",
      '{ input: "1", output: "2" }',
      '{ input: "1", output: "2" }',
      "TEXT",
    ],
    [
      "a cost that has ended",
      '[{ input: "9", output: "9" }, { from: 2020-01-01, input: "1", output: "1" }]',
      '{ input: "1", output: "1" }',
      "TEXT",
    ],
    ["a price in other units than the cost", '{ output: "40" }', '{ image: "0.04" }', "IMAGE"],
  ])("uas check does not warn of %s", async (_, cost, price, type) => {
    expect(await warnings(cost, price, type)).toEqual([]);
  });
});
