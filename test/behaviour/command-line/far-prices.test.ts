import { describe, expect, it } from "vitest";
import { importJson, oneModel, runIn } from "./price-world.ts";

/** A model of the public list, which costs 0.25 for input and 2 for output. */
const known = (cost: string, price: string): string =>
  oneModel(cost === "" ? "" : `, cost: ${cost}`, price).replace("acme-1", "gpt-5-mini");

async function warnings(yaml: string): Promise<readonly string[]> {
  const { code, out } = await runIn({ "uas.yaml": yaml }, "check", "--json");
  expect(code).toBe(0);
  return (JSON.parse(out) as { warnings: readonly string[] }).warnings;
}

const fix = "check the unit and the decimal point";

describe("a price that is far from the public list", () => {
  it.each([
    ["over 20 times", "", '{ input: "5.01", output: "2" }', "price of input, 5.01"],
    ["under a twentieth", "", '{ input: "0.25", output: "0.09" }', "price of output, 0.09"],
    [
      "as a cost",
      '{ input: "0.25", output: "41" }',
      '{ input: "0.25", output: "40" }',
      "cost of output, 41",
    ],
  ])("uas check warns of a price %s", async (_name, cost, price, text) => {
    expect(await warnings(known(cost, price))).toContainEqual(
      expect.stringMatching(
        new RegExp(`^uas.yaml:5 models.m: the ${text}, is far from .*openai gpt-5-mini.*: ${fix}$`),
      ),
    );
  });

  it.each([
    ["20 times the list's", '{ input: "5", output: "40" }'],
    ["of 0", '{ input: "0", output: "0" }'],
  ])("uas check does not warn of a price %s", async (_name, price) => {
    expect(await warnings(known("", price))).toEqual([]);
  });
});

describe("models without a price", () => {
  const yaml = known("", "null");

  it("uas price import finds prices of models that have none yet", async () => {
    const { json, code } = await importJson({ "uas.yaml": yaml }, "--margin", "20%");
    expect(code).toBe(0);
    expect(json.models[0]?.price).toMatchObject({
      status: "new",
      current: null,
      imported: [{ input: "0.3", output: "2.4" }],
    });
  });

  it("uas check refuses models that have no price", async () => {
    const { code, err } = await runIn({ "uas.yaml": yaml }, "check");
    expect([code, err]).toEqual([1, expect.stringContaining("price is missing: add price:")]);
  });
});
