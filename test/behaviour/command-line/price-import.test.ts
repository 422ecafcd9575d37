import { afterEach, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import type { ServedKind } from "../../../src/config/kinds.ts";
import { loadText, allKinds } from "../../unit/config/support.ts";
import { importJson, modelsDev, oneModel, runIn } from "./price-world.ts";

afterEach(() => vi.unstubAllGlobals());

const config = `version: 1
vendors:
  openai: { kind: openai, base_url: https://api.openai.com/v1, api_key: "\${env:KEY}" }
  claude: { kind: anthropic, base_url: https://ai-proxy.example.com, api_key: "\${env:KEY}" }
  azure: { kind: openai-compatible, base_url: https://acme.openai.azure.com/openai/v1 }
  local: { kind: openai-compatible, base_url: "http://127.0.0.1:11434/v1" }
  demo: { kind: demo }
models:
  mini:
    type: TEXT
    routes: [{ vendor: openai, model: gpt-5-mini-2025-08-07, cost: { input: "0.20", output: "2" } }]
    max_output_tokens: 8192
    price: { input: "0.25", output: "2.00" }
  sonnet:
    type: TEXT
    routes: [{ vendor: claude, model: claude-sonnet-4-5-20250929 }, { vendor: demo, model: chat }]
    max_output_tokens: 8192
    price: { input: "3", output: "15" }
  cloud:
    type: TEXT
    routes: [{ vendor: azure, model: gpt-5-mini }]
    max_output_tokens: 8192
    price: { input: "3", output: "15" }
  llama3.2:
    type: TEXT
    routes: [{ vendor: local, model: llama3.2 }]
    max_output_tokens: 4096
    price: { input: "0", output: "0" }
`;
const files = { "uas.yaml": config };

describe("price import from the list that comes with the gateway", () => {
  it("shows new, changed and missing costs, and which entry of the list matched by which rule", async () => {
    const { json, code } = await importJson(files);
    expect(code).toBe(1);
    expect(json.sources).toEqual([
      { format: "genai-prices", title: "genai-prices (@pydantic/genai-prices 0.1.8)" },
    ]);
    const routes = Object.fromEntries(
      json.models.map(({ modelKey, routes: [route] }) => [modelKey, route]),
    );
    expect(routes["mini"]).toMatchObject({
      status: "changed",
      current: [{ input: "0.2", output: "2" }],
      imported: [
        {
          input: "0.25",
          cached_input: "0.025",
          output: "2",
          tools: { web_search: "0.01", file_search: "0.0025" },
        },
      ],
      found: [
        {
          entry: "openai/gpt-5-mini",
          match: 'rule equals "gpt-5-mini" or equals "gpt-5-mini-2025-08-07"',
          assumption: null,
          notImported: [],
        },
      ],
    });
    expect(routes["sonnet"]).toMatchObject({
      status: "new",
      current: null,
      imported: [
        {
          input: "3",
          cached_input: "0.3",
          cache_write: "3.75",
          output: "15",
          tiers: [
            {
              above: 200_000,
              input: "6",
              cached_input: "0.6",
              cache_write: "7.5",
              output: "22.5",
            },
          ],
        },
      ],
      found: [
        {
          entry: "anthropic/claude-sonnet-4-5",
          assumption: "ai-proxy.example.com charges what anthropic does, as its kind is anthropic",
        },
      ],
    });
    expect(routes["cloud"]).toMatchObject({ status: "new", found: [{ match: "same name" }] });
    expect(routes["llama3.2"]).toMatchObject({ status: "missing", imported: null });
    expect(routes["llama3.2"]?.reason).toContain("openai-compatible at 127.0.0.1");
  });

  it("leaves out routes to demo vendors, and prices where no margin is given", async () => {
    const { json } = await importJson(files);
    expect(json.models.map(({ routes }) => routes.length)).toEqual([1, 1, 1, 1]);
    expect(json.models.map(({ price }) => price)).toEqual([null, null, null, null]);
    expect(json.margin).toBeNull();
  });

  it("price import from the list that comes with the gateway asks no server", async () => {
    const fetch = vi.fn();
    vi.stubGlobal("fetch", fetch);
    await importJson(files, "--margin", "20%");
    expect(fetch).not.toHaveBeenCalled();
  });

  it("finds models that a cloud resells under their maker", async () => {
    const claude = config.replace("model: gpt-5-mini }", "model: claude-sonnet-4-5 }");
    const { json } = await importJson({ "uas.yaml": claude }, "--vendor", "azure");
    expect(json.models[0]?.routes[0]?.found).toMatchObject([
      { entry: "anthropic/claude-sonnet-4-5", match: "same name" },
    ]);
  });
});

describe("price import with a margin", () => {
  it("computes prices exactly from the costs, for each unit and tier", async () => {
    const { json, code } = await importJson(files, "--vendor", "claude", "--margin", "20%");
    expect(code).toBe(0);
    expect(json.margin).toBe("20%");
    expect(json.models).toHaveLength(1);
    expect(json.models[0]?.price).toMatchObject({
      status: "changed",
      current: [{ input: "3", output: "15" }],
      imported: [
        {
          input: "3.6",
          cached_input: "0.36",
          cache_write: "4.5",
          output: "18",
          tiers: [
            { above: 200_000, input: "7.2", cached_input: "0.72", cache_write: "9", output: "27" },
          ],
        },
      ],
    });
  });

  it("a proposed price covers the most expensive route of its model, at its configured cost where no list has it", async () => {
    const routes = oneModel(
      ' }, { vendor: openai, model: acme-2, cost: { input: "5", output: "1" }',
    );
    const world = { "uas.yaml": routes, "list.json": modelsDev({ input: 2, output: 4 }) };
    const { json, code } = await importJson(world, "--from", "list.json", "--margin", "0");
    expect(code).toBe(1);
    expect(json.models[0]?.price?.imported).toEqual([{ input: "5", output: "4" }]);
    const { out } = await runIn(world, "price", "import", "--from", "list.json", "--margin", "0");
    expect(out).toContain("from the configured cost of openai acme-2");
  });

  it("computes no price where the cost of a route is not known", async () => {
    const routes = oneModel(" }, { vendor: openai, model: acme-2");
    const world = { "uas.yaml": routes, "list.json": modelsDev({ input: 2, output: 4 }) };
    const { json } = await importJson(world, "--from", "list.json", "--margin", "10%");
    expect(json.models[0]?.price).toMatchObject({
      status: "refused",
      imported: null,
      reason: "the cost of openai acme-2 is not known",
    });
    expect(parse(json.yaml)).toEqual({
      models: {
        m: {
          routes: [{ vendor: "openai", model: "acme-1", cost: { input: "2", output: "4" } }],
        },
      },
    });
  });

  it("computes no price where routes cost by different units, as a call would be charged both", async () => {
    const routes = oneModel(
      ', cost: { second: "1" } }, { vendor: openai, model: acme-2, cost: { input: "1", output: "1" }',
      '{ second: "2" }',
      "VIDEO",
    ).replace("    max_output_tokens: 9\n", "");
    const { json } = await importJson({ "uas.yaml": routes }, "--margin", "10%");
    expect(json.models[0]?.price).toMatchObject({ status: "conflicting", imported: null });
  });

  it("carries announced prices over with their dates", async () => {
    const world = {
      "uas.yaml": oneModel(),
      "list.json": [
        {
          id: "openai",
          models: [
            {
              id: "acme-1",
              match: { equals: "acme-1" },
              prices: [
                { prices: { input_mtok: 9, output_mtok: 9 } },
                {
                  constraint: { start_date: "2026-01-01" },
                  prices: { input_mtok: 1, output_mtok: 2 },
                },
                {
                  constraint: { start_date: "2999-01-01" },
                  prices: { input_mtok: 0.1, output_mtok: 3 },
                },
              ],
            },
          ],
        },
      ],
    };
    const { json } = await importJson(world, "--from", "list.json", "--margin", "50%");
    expect(json.models[0]?.routes[0]?.imported).toEqual([
      { input: "1", output: "2" },
      { from: "2999-01-01", input: "0.1", output: "3" },
    ]);
    expect(json.models[0]?.price?.imported).toEqual([
      { input: "1.5", output: "3" },
      { from: "2999-01-01", input: "0.15", output: "4.5" },
    ]);
  });
});

describe("the YAML of price import", () => {
  it("the YAML of price import is accepted by the configuration once it is copied there, and then nothing differs", async () => {
    const options = ["--margin", "12.5%"];
    const { json } = await importJson(files, ...options);
    const written = parse(json.yaml) as Written;
    const whole = parse(config) as Written;
    for (const [key, { routes = [], price }] of Object.entries(written.models)) {
      const model = whole.models[key];
      if (model === undefined) throw new Error(`no model ${key}`);
      model.price = price ?? model.price;
      for (const { vendor, model: name, cost } of routes) {
        const same = model.routes?.find((each) => each.vendor === vendor && each.model === name);
        if (same !== undefined) same.cost = cost;
      }
    }
    const copied = JSON.stringify(whole);
    const kinds = new Map<string, ServedKind>([...allKinds, ["demo", demoKind]]);
    expect(loadText(copied, { env: { KEY: "k" }, kinds }).models.size).toBe(4);
    const again = await importJson({ "uas.yaml": copied }, ...options);
    const statuses = again.json.models
      .slice(0, 3)
      .flatMap(({ routes, price }) => [...routes.map(({ status }) => status), price?.status]);
    expect(new Set(statuses)).toEqual(new Set(["unchanged"]));
    expect(parse(again.json.yaml)).toEqual({ models: {} });
  });

  it("stands on standard output below the differences as comments, so that all of it is YAML", async () => {
    const { out } = await runIn(files, "price", "import", "--vendor", "openai", "--margin", "20%");
    expect(out.split("\n").slice(0, 6)).toEqual([
      "# changed      mini: cost of openai gpt-5-mini-2025-08-07",
      "#   - input 0.2, output 2",
      "#   + input 0.25, cached_input 0.025, output 2, tools.web_search 0.01, tools.file_search 0.0025",
      '#   found: openai/gpt-5-mini (rule equals "gpt-5-mini" or equals "gpt-5-mini-2025-08-07") in genai-prices (@pydantic/genai-prices 0.1.8)',
      "# changed      mini: price",
      "#   - input 0.25, output 2",
    ]);
    expect(parse(out)).toEqual({
      models: {
        mini: {
          routes: [
            {
              vendor: "openai",
              model: "gpt-5-mini-2025-08-07",
              cost: {
                input: "0.25",
                cached_input: "0.025",
                output: "2",
                tools: { web_search: "0.01", file_search: "0.0025" },
              },
            },
          ],
          price: {
            input: "0.3",
            cached_input: "0.03",
            output: "2.4",
            tools: { web_search: "0.012", file_search: "0.003" },
          },
        },
      },
    });
  });

  it("the YAML of price import names its list with version, its day and its margin in a comment", async () => {
    const { json } = await importJson(files, "--vendor", "openai", "--margin", "20%");
    const day = new Date().toISOString().slice(0, 4);
    expect(json.yaml).toMatch(
      new RegExp(
        `^# Prices imported on ${day}-\\d\\d-\\d\\d from genai-prices \\(@pydantic/genai-prices 0\\.1\\.8\\); margin 20% of the cost, rounded up\\.\n`,
      ),
    );
  });

  it("the YAML of price import goes to the file of --output, and never over one that is there", async () => {
    const line = ["price", "import", "--vendor", "openai", "--output"];
    const ran = await runIn(files, ...line, "out.yaml");
    expect(ran.code).toBe(0);
    expect(ran.out).toMatch(/^changed {6}mini: cost/);
    expect(parse(ran.file("out.yaml") ?? "")).toHaveProperty("models.mini.routes");
    const refused = await runIn(files, ...line, "uas.yaml");
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toMatch(/^uas: cannot write uas\.yaml: .*; name a new file\n$/);
    expect(refused.file("uas.yaml")).toBe(config);
  });
});

interface Written {
  readonly models: Record<
    string,
    { routes?: { vendor: string; model: string; cost?: unknown }[]; price?: unknown }
  >;
}

const demoKind: ServedKind = {
  dialects: ["chat-completions"],
  modelTypes: allKinds.get("openai")?.modelTypes ?? [],
  needsBaseUrl: false,
  needsApiKey: false,
};

describe("wrong usage of price import", () => {
  it("says where models.dev is to be had, for nothing is downloaded", async () => {
    const { code, err } = await runIn(files, "price", "import", "--from", "models.dev");
    expect(code).toBe(2);
    expect(err).toContain("curl -O https://models.dev/api.json");
    expect(err).toContain("--from models.dev:api.json");
  });

  it.each([["-5%"], ["20 %"], ["1e2"], ["abc"], ["12.34567"], ["99999"]])(
    "refuses a margin of %s",
    async (margin) => {
      const { code, out } = await runIn(files, "price", "import", `--margin=${margin}`);
      expect({ code, out }).toEqual({ code: 2, out: "" });
    },
  );

  it("refuses a vendor that the configuration does not have", async () => {
    const { code, err } = await runIn(files, "price", "import", "--vendor", "opnai");
    expect(code).toBe(1);
    expect(err).toContain("has no vendor opnai (have: openai, claude, azure, local, demo)");
  });

  it("says that the built-in demo has nothing to compare", async () => {
    const { code, err } = await runIn({}, "price", "import");
    expect({ code, err }).toEqual({
      code: 1,
      err: "uas: built-in demo has no route to compare\n",
    });
  });
});
