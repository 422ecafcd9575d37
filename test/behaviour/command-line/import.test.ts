import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { run, runJson } from "./support.ts";

const litellm = `
x-limits: &limits
  rpm: "100" # a number as text
model_list:
  - model_name: gpt-5-mini
    litellm_params:
      <<: *limits
      model: openai/gpt-5-mini
      api_key: os.environ/OPENAI_KEY_A
      weight: 2
  - model_name: gpt-5-mini
    litellm_params: { model: azure/mini, api_base: "https://acme.openai.azure.com/", api_key: sk-one, order: 2 }
    model_info: { input_cost_per_token: "0.00000025", output_cost_per_token: 2e-6, max_output_tokens: 9000 }
  - model_name: claude
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_key: sk-two }
  - model_name: "ds/*"
    litellm_params: { model: "deepseek/*", api_key: os.environ/DEEPSEEK_API_KEY }
  - model_name: local
    litellm_params: { model: ollama/llama3.1 }
  - model_name: far
    litellm_params: { model: bedrock/anthropic.claude-v2 }
  - model_name: vectors
    litellm_params: { model: text-embedding-3-small }
    model_info: { mode: embedding }
litellm_settings:
  fallbacks: [{ gpt-5-mini: [claude, far] }]
  success_callback: [langfuse]
router_settings:
  model_group_alias: { gpt-4: gpt-5-mini }
  fallbacks: { claude: [gpt-5-mini] }
general_settings: { master_key: sk-three }
`;

const channels = {
  success: true,
  data: {
    total: 9,
    items: [
      {
        id: 1,
        type: 1,
        key: "sk-one",
        status: 1,
        models: "gpt-5-mini,fast",
        model_mapping: '{"fast":"gpt-5-nano"}',
        priority: 10,
        weight: 5,
      },
      {
        id: 2,
        type: "1",
        status: "1",
        base_url: "https://proxy.example.com",
        models: "gpt-5-mini",
        channel_info: { is_multi_key: true, multi_key_size: 2 },
      },
      { id: 3, type: 33, status: 1, models: "x" },
      { id: 4, type: 14, status: 2, models: "claude-sonnet-4-5" },
    ],
  },
  options: {
    ModelRatio: '{"gpt-5-mini":0.15}',
    CompletionRatio: '{"gpt-5-mini":8}',
    GroupRatio: '{"default":1,"vip":0.8}',
  },
};

async function imported(product: string, content: string) {
  const line = ["import", product, "source", "--margin", "20%"];
  const { out, err, code } = await run(line, { files: { source: content }, hasAllKinds: true });
  return { out, err, code, file: parse(out) as Record<string, Record<string, object>> };
}

async function checked(yaml: string) {
  const names = [...yaml.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = ""]) => name);
  const env = Object.fromEntries(names.map((name) => [name, `value-of-${name}`]));
  return runJson(["check"], { files: { "uas.yaml": yaml }, env, hasAllKinds: true });
}

describe("import", () => {
  it("import litellm makes deployments of one name routes with weights, priorities and costs", async () => {
    const { file } = await imported("litellm", litellm);
    expect(file["models"]?.["gpt-5-mini"]).toMatchObject({
      type: "TEXT",
      routes: [
        { vendor: "openai", model: "gpt-5-mini", weight: 2 },
        {
          vendor: "azure-openai",
          model: "mini",
          priority: 1,
          cost: { input: "0.25", output: "2" },
        },
      ],
      fallback_models: ["claude"],
      price: { input: "0.3", output: "2.4" },
    });
    expect(file["models"]).toHaveProperty("gpt-4");
    expect(file["models"]?.["claude"]).toMatchObject({ fallback_models: ["gpt-5-mini"] });
    expect(file["models"]?.["vectors"]).toMatchObject({ type: "EMBEDDING" });
  });

  it("import litellm turns os.environ into references, and rpm into limits of the credential", async () => {
    const { file } = await imported("litellm", litellm);
    expect(file["vendors"]).toMatchObject({
      openai: { credentials: [{ api_key: "${env:OPENAI_KEY_A}", limits: { rpm: 100 } }] },
      "azure-openai": {
        base_url: "https://acme.openai.azure.com/openai/v1",
        api_key: "${env:AZURE_API_KEY}",
      },
      anthropic: { preset: "anthropic", api_key: "${env:ANTHROPIC_API_KEY}" },
    });
  });

  it("import litellm writes the models of the price list for a wildcard, and reports it", async () => {
    const { file, err } = await imported("litellm", litellm);
    const names = Object.keys(file["models"] ?? {});
    expect(names.filter((name) => name.startsWith("ds/deepseek-")).length).toBeGreaterThan(1);
    expect(err).toContain("ds/* is a wildcard");
  });

  it("import litellm reports what it leaves out with its line, also as comments", async () => {
    const { out, err } = await imported("litellm", litellm);
    const expected = [
      "AZURE_API_KEY: model_list[1] (line 11): api_key",
      "model_list[5] (line 20): this gateway has no kind for bedrock",
      "litellm_settings.success_callback (line 27): no callbacks",
      "general_settings.master_key (line 31): set UAS_OPERATOR_TOKEN",
      "models.local: no price is known",
    ];
    for (const text of expected) {
      expect(err).toContain(text);
      expect(out).toContain(text);
    }
  });

  it("import new-api makes priorities, mappings, ratios and groups those of uas.yaml", async () => {
    const { file, err } = await imported("new-api", JSON.stringify(channels));
    expect(file["models"]?.["gpt-5-mini"]).toMatchObject({
      routes: [
        { vendor: "openai", weight: 5 },
        { vendor: "proxy-example-com", priority: 1 },
      ],
      price: { input: "0.3", output: "2.4" },
    });
    expect(file["models"]?.["fast"]).toMatchObject({ routes: [{ model: "gpt-5-nano" }] });
    expect(file["price_lists"]).toEqual({ vip: { markup: "-20%" } });
    expect(file["vendors"]?.["proxy-example-com"]).toMatchObject({
      base_url: "https://proxy.example.com/v1",
      credentials: [{ weight: 1 }, { weight: 1 }],
    });
    expect(err).toContain("channels[2] (id 3): this gateway has no kind for channel type 33");
    expect(err).toContain("channels[3] (id 4): is disabled");
    expect(err).toContain("data: has 4 of 9 channels");
  });

  it("what import writes passes check once its variables are set", async () => {
    const { out } = await imported("litellm", litellm);
    expect((await checked(out)).json).toMatchObject({ ok: true });
    const others = await imported("new-api", JSON.stringify(channels));
    expect((await checked(others.out)).json).toMatchObject({ ok: true, models: 2 });
  });

  it.each([
    ["litellm", "model_list:\n  - a: [sk-secret\n b: }", "source:3:2: not YAML"],
    ["litellm", "model_list: *sk-secret", "an alias has no anchor"],
    ["litellm", "a: 1\nmodel_list: none", "source:2: no model_list"],
    ["new-api", '{"a": 1,\n "key": sk-secret}', "source:2: not JSON"],
    ["new-api", '{"data": "sk-secret"}', "source:1: no channels"],
  ])("import %s refuses %j with its line, without a quotation", async (product, text, expected) => {
    const { err, out, code } = await imported(product, text);
    expect(code).toBe(1);
    expect(err).toContain(expected);
    expect(err + out).not.toContain("sk-secret");
  });
});
