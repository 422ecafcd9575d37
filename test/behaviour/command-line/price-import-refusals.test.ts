import { describe, expect, it } from "vitest";
import { genaiPrices, importJson, modelsDev, oneModel, runIn } from "./price-world.ts";

/** The comparison of the one route with a list. */
async function compare(list: unknown, ...options: readonly string[]) {
  const files = { "uas.yaml": oneModel(), "list.json": list };
  const { json, code } = await importJson(files, "--from", "list.json", ...options);
  const [model] = json.models;
  return { code, yaml: json.yaml, price: model?.price, ...model?.routes[0] };
}

describe("a price that cannot be imported is refused with its reason, never taken as 0", () => {
  it.each([
    ["less than zero", { input: -1, output: 2 }, "refused", "input is -1, less than zero"],
    ["null", { input: null, output: 2 }, "refused", "input is null, which is not a number"],
    ["a word", { input: "free", output: 2 }, "refused", "input is free, which is not a number"],
    ["empty", { input: "", output: 2 }, "refused", "input is empty, which is not a number"],
    ["true", { input: true, output: 2 }, "refused", "input is true, which is not a number"],
    ["too much", { input: 1e30, output: 2 }, "refused", "input is 1e+30, too much for a price"],
    ["without output", { input: 1 }, "missing", "has no price for output"],
    ["without input", { output: 1 }, "missing", "has no price for input"],
    ["without any", {}, "missing", "has no price for input"],
    ["without cost", undefined, "missing", "the list has openai/acme-1, but no price for it"],
  ])("a price of models.dev that is %s is never imported as 0", async (_, cost, status, reason) => {
    const compared = await compare(modelsDev(cost), "--margin", "20%");
    expect(compared).toMatchObject({ code: 1, status, imported: null });
    expect(compared.reason).toContain(reason);
    expect(compared.remedy).toMatch(/^write the cost by hand/);
    expect(compared.price).toMatchObject({ status: "refused", imported: null });
    expect(compared.yaml).not.toContain("acme-1");
  });

  it.each([
    ["less than zero", { input_mtok: -1, output_mtok: 2 }, "refused", "less than zero"],
    ["a word", { input_mtok: "?", output_mtok: 2 }, "refused", "which is not a number"],
    ["of a tier", tiered({ start: 9, price: -1 }), "refused", "less than zero"],
    ["without a base", { input_mtok: { tiers: [] }, output_mtok: 2 }, "refused", "left out"],
    ["without output", { input_mtok: 1 }, "missing", "has no price for output"],
    ["no price at all", [], "refused", "cannot be read"],
  ])(
    "a price of genai-prices that is %s is never imported as 0",
    async (_, prices, status, reason) => {
      const compared = await compare(genaiPrices(prices));
      expect(compared).toMatchObject({ code: 1, status, imported: null });
      expect(compared.reason).toContain(reason);
    },
  );

  it("a model is refused where a matching rule of genai-prices cannot be read", async () => {
    const [provider] = genaiPrices({ input_mtok: 1, output_mtok: 1 }) as [object];
    const list = [{ ...provider, models: [{ id: "x", match: { or: 1 }, prices: {} }] }];
    expect(await compare(list)).toMatchObject({ status: "refused", imported: null });
  });

  it.each(["__proto__", "constructor", "toString"])(
    "a list is not taken to have the model %s, a name that every object inherits",
    async (name) => {
      const config = oneModel().replace("model: acme-1", `model: ${name}`);
      const files = { "uas.yaml": config, "list.json": modelsDev({ input: 1, output: 1 }) };
      const { json } = await importJson(files, "--from", "list.json");
      expect(json.models[0]?.routes[0]?.status).toBe("missing");
    },
  );
});

function tiered(...tiers: readonly object[]): object {
  return { input_mtok: { base: 1, tiers }, output_mtok: 2 };
}

describe("prices that contradict each other, or that our units cannot say, are conflicts", () => {
  it.each([
    ["two tiers at one limit", tiered({ start: 9, price: 3 }, { start: 9, price: 4 })],
    ["a tier from the first token on", tiered({ start: 0, price: 3 })],
    ["a limit that is no whole number", tiered({ start: 1.5, price: 3 })],
    [
      "prices by the time of day",
      [
        { prices: { input_mtok: 1, output_mtok: 1 } },
        {
          constraint: { start_time: "00:30:00Z", end_time: "16:30:00Z" },
          prices: { input_mtok: 2, output_mtok: 2 },
        },
      ],
    ],
    [
      "dates that are not in order",
      [undefined, "2999-01-01", "2998-01-01"].map((date) => ({
        ...(date !== undefined && { constraint: { start_date: date } }),
        prices: { input_mtok: 1, output_mtok: 1 },
      })),
    ],
  ])("genai-prices with %s is a conflict", async (_, prices) => {
    const compared = await compare(genaiPrices(prices));
    expect(compared).toMatchObject({ code: 1, status: "conflicting", imported: null });
  });

  it.each([
    ["a tier that leaves out a price", [{ tier: { size: 9 }, input: 2 }]],
    ["a tier by something else", [{ tier: { type: "batch", size: 9 }, input: 2, output: 2 }]],
    ["a tier without a limit", [{ input: 2, output: 2 }]],
    [
      "two tiers at one limit",
      [2, 3].map((input) => ({ tier: { type: "context", size: 9 }, input, output: 2 })),
    ],
  ])("models.dev with %s is a conflict", async (_, tiers) => {
    const compared = await compare(modelsDev({ input: 1, output: 2, tiers }));
    expect(compared).toMatchObject({ code: 1, status: "conflicting", imported: null });
  });

  it("two fields that are one unit but have different prices", async () => {
    const files = {
      "uas.yaml": oneModel("", '{ second: "1" }', "AUDIO").replace(
        "    max_output_tokens: 9\n",
        "",
      ),
      "list.json": genaiPrices({ audio_hours: 3.6, input_audio_hours: 7.2 }),
    };
    const { json } = await importJson(files, "--from", "list.json");
    expect(json.models[0]?.routes[0]).toMatchObject({ status: "conflicting", imported: null });
  });

  it("two lists that disagree on a unit that both name", async () => {
    const files = {
      "uas.yaml": oneModel(),
      "a.json": modelsDev({ input: 1, output: 2 }),
      "b.json": genaiPrices({ input_mtok: 1, output_mtok: 2.5 }),
    };
    const { json, code } = await importJson(files, "--from", "a.json", "--from", "b.json");
    expect(code).toBe(1);
    expect(json.models[0]?.routes[0]).toMatchObject({ status: "conflicting", imported: null });
    expect(json.models[0]?.routes[0]?.reason).toMatch(
      /^models\.dev \(a\.json .*\) and genai-prices \(b\.json .*\) disagree on output: 2 and 2\.5$/,
    );
  });

  it("two lists that agree, or of which one has the model, are one price", async () => {
    const files = {
      "uas.yaml": oneModel(),
      "a.json": modelsDev({ input: 0.25, output: 2 }),
      "b.json": genaiPrices({ input_mtok: 0.25, output_mtok: 2.0, cache_read_mtok: 0.1 }),
      "c.json": { openai: { id: "openai", models: {} } },
    };
    const from = ["a.json", "b.json", "c.json"].flatMap((file) => ["--from", file]);
    const { json, code } = await importJson(files, ...from);
    expect(code).toBe(0);
    expect(json.models[0]?.routes[0]).toMatchObject({
      status: "new",
      imported: [{ input: "0.25", output: "2" }],
      found: [{ entry: "openai/acme-1" }, { entry: "openai/acme-1" }],
    });
  });
});

describe("a price of 0 that the list names", () => {
  it.each([
    ["the whole model", { input: 0, output: 0 }, "free of charge: input, output"],
    ["one unit of it", { input: 1, output: 2, cache_write: 0 }, "free of charge: cache_write"],
  ])("is shown as free and not imported: %s", async (_, cost, reason) => {
    const compared = await compare(modelsDev(cost));
    expect(compared).toMatchObject({ code: 1, status: "free", reason, imported: null });
    expect(compared.remedy).toContain("--allow-free");
  });

  it("a price of 0 that the list names is imported with --allow-free", async () => {
    const compared = await compare(modelsDev({ input: 0, output: 0.0 }), "--allow-free");
    expect(compared).toMatchObject({
      code: 0,
      status: "new",
      imported: [{ input: "0", output: "0" }],
    });
  });
});

describe("fields of a list", () => {
  it("that no unit can say are named as not imported, once", async () => {
    const tiers = [{ tier: { size: 9 }, input: 2, output: 2, input_video: 3, output_video: 8 }];
    const compared = await compare(
      modelsDev({ input: 1, output: 1, input_video: 3, output_video: 4, tiers }),
    );
    expect(compared.found?.[0]?.notImported).toEqual([
      "input_video 3",
      "output_video 4",
      "output_video 8 above 9 tokens",
    ]);
  });

  it("are as exact as they are written, also where binary numbers are not", async () => {
    const cost = '{ "input": 0.100000001, "output": 12345678.123456789, "cache_read": 5e-7 }';
    const list = `{ "openai": { "models": { "acme-1": { "cost": ${cost} } } } }`;
    expect((await compare(list)).imported).toEqual([
      { input: "0.100000001", cached_input: "0.0000005", output: "12345678.123456789" },
    ]);
  });

  it("are rounded up to a nano-dollar where they have more digits, and named as such", async () => {
    const compared = await compare(modelsDev({ input: "0.0833333333333", output: 2 }));
    expect(compared.imported).toEqual([{ input: "0.083333334", output: "2" }]);
    expect(compared.found?.[0]?.roundedUp).toEqual(["input 0.0833333333333"]);
  });

  it("prices by the hour or the thousand become prices of one second and one request", async () => {
    const files = {
      "uas.yaml": oneModel("", '{ second: "1" }', "AUDIO").replace(
        "    max_output_tokens: 9\n",
        "",
      ),
      "list.json": genaiPrices({ audio_hours: 3.6, input_audio_hours: 3.6, requests_kcount: 5 }),
    };
    const { json } = await importJson(files, "--from", "list.json");
    expect(json.models[0]?.routes[0]?.imported).toEqual([{ second: "0.001", request: "0.005" }]);
  });

  it("fields of the older models.dev say what calls above 200,000 tokens cost", async () => {
    const compared = await compare(
      modelsDev({ input: 1, output: 2, context_over_200k: { input: 3, output: 4 } }),
    );
    expect(compared.imported).toEqual([
      { input: "1", output: "2", tiers: [{ above: 200_000, input: "3", output: "4" }] },
    ]);
  });

  it("fields of the newer models.dev count by their exact tiers, not by what repeats them", async () => {
    const compared = await compare(
      modelsDev({
        input: 1,
        output: 2,
        tiers: [{ tier: { type: "context", size: 272_000 }, input: 3, output: 4 }],
        context_over_200k: { input: 3, output: 4 },
      }),
    );
    expect(compared.imported).toMatchObject([{ tiers: [{ above: 272_000 }] }]);
  });

  it("fields with tiers at different limits make bands that are complete in themselves", async () => {
    const compared = await compare(
      genaiPrices({
        input_mtok: {
          base: 1,
          tiers: [
            { start: 32_000, price: 2 },
            { start: 128_000, price: 3 },
          ],
        },
        cache_read_mtok: { base: 0.1, tiers: [{ start: 32_000, price: 0.2 }] },
        output_mtok: 5,
      }),
    );
    expect(compared.imported).toEqual([
      {
        input: "1",
        cached_input: "0.1",
        output: "5",
        tiers: [
          { above: 32_000, input: "2", cached_input: "0.2", output: "5" },
          { above: 128_000, input: "3", cached_input: "0.2", output: "5" },
        ],
      },
    ]);
  });
});

describe("a file that is no price list", () => {
  const expected = "expected api.json of models.dev or data.json of genai-prices";
  it.each([
    ["is not JSON", "<html>", "list.json", `uas: list.json is not JSON: ${expected}\n`],
    [
      "is something else",
      "{}",
      "list.json",
      `uas: list.json is not a known price list: ${expected}\n`,
    ],
    [
      "is an empty list",
      "[]",
      "list.json",
      `uas: list.json is not a known price list: ${expected}\n`,
    ],
    [
      "is the other format",
      modelsDev({}),
      "genai-prices:list.json",
      "uas: list.json is a list of models.dev, not of genai-prices: write --from models.dev:…\n",
    ],
    ["is not there", "", "none.json", /^uas: cannot read none\.json: ENOENT/],
    ["is a folder", "", ".", /^uas: cannot read \.: EISDIR/],
  ])(
    "a file that is no price list is refused in one line where it %s",
    async (_, list, from, message) => {
      const files = { "uas.yaml": oneModel(), "list.json": list };
      const { code, out, err } = await runIn(files, "price", "import", "--from", from);
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(message);
      expect(err.trimEnd()).not.toContain("\n");
    },
  );
});
