import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { servedKinds as realKinds } from "../../../src/provider/index.ts";
import { ConfigError } from "../../../src/config/problems.ts";
import { allKinds, loadText, problemsOf, servedKinds, withFolder } from "./support.ts";

const full = `version: 1
vendors:
  openai:
    kind: openai
    base_url: https://\${env:HOST}/v1/
    api_key: "\${env:OPENAI_API_KEY}"
    dialects: [responses]
    timeouts: { connect: 500ms, first_byte: 2m }
    max_in_flight: 20
    polls_per_second: 5
    on_disconnect: drain
  replicate: { kind: replicate, base_url: https://api.replicate.com, api_key: "\${file:token.txt}", native_prefix: /replicate }
models:
  gpt-5-mini:
    type: TEXT
    routes: [{ vendor: openai, model: gpt-5-mini }]
    max_output_tokens: 8192
    price: { input: 0.15, cached_input: "0.000000001", output: "2.00" }
  black-forest-labs/flux:
    type: IMAGE
    name: Flux
    routes: [{ vendor: replicate, model: black-forest-labs/flux-schnell }]
    price: { image: "0.003" }
webhooks: { allow_hosts: [Hooks.Test], ca_file: null }
`;
const secrets = {
  env: { OPENAI_API_KEY: "sk-1", HOST: "api.openai.com" },
  files: { "token.txt": "r8-2\n" },
};

describe("a valid file", () => {
  const config = loadText(full, { ...secrets, kinds: allKinds });

  it("a valid file reports the line where each vendor and model begins", () => {
    expect(Object.fromEntries(config.places ?? [])).toEqual({
      "vendors.openai": "uas.yaml:3",
      "vendors.replicate": "uas.yaml:12",
      "models.gpt-5-mini": "uas.yaml:14",
      "models.black-forest-labs/flux": "uas.yaml:19",
    });
  });

  it("becomes vendors with addresses, resolved secrets and limits", () => {
    expect(config.vendors.get("openai")).toEqual({
      name: "openai",
      kind: "openai",
      baseUrl: "https://api.openai.com/v1",
      runBaseUrl: undefined,
      apiKey: "sk-1",
      dialects: ["responses"],
      credentials: [{ name: "OPENAI_API_KEY", apiKey: "sk-1", weight: 1, priority: 0 }],
      timeouts: {
        ...{
          connectMs: 500,
          firstByteMs: 120_000,
          firstContentMs: 120_000,
          idleMs: 60_000,
          totalMs: 3_600_000,
        },
      },
      maxInFlight: 20,
      pollsPerSecond: 5,
      onDisconnect: "drain",
      nativePrefix: undefined,
    });
    expect(config.vendors.get("replicate")).toMatchObject({
      apiKey: "r8-2",
      nativePrefix: "/replicate",
      onDisconnect: "grace",
      maxInFlight: undefined,
      pollsPerSecond: undefined,
    });
  });

  it("R-MON-1: becomes models with exact prices, quoted or not", () => {
    expect([...config.models.keys()]).toEqual(["gpt-5-mini", "black-forest-labs/flux"]);
    expect(config.models.get("gpt-5-mini")).toMatchObject({
      name: "gpt-5-mini",
      type: ModelType.TEXT,
      maxOutputTokens: 8192,
      holdOutputTokens: 2048,
      prices: [
        {
          fromMs: -Infinity,
          price: {
            input: 150_000_000n,
            cachedInput: 1n,
            cacheWrite: undefined,
            output: 2_000_000_000n,
          },
        },
      ],
    });
    expect(config.models.get("black-forest-labs/flux")).toMatchObject({
      name: "Flux",
      maxOutputTokens: 0,
      routes: [{ vendor: "replicate", model: "black-forest-labs/flux-schnell" }],
    });
  });

  it("becomes prices of images by size and quality; the highest is that of all", () => {
    const table = `price:
      image:
        - { size: 1024X1024, quality: Low, price: 0.01 }
        - { size: 1024*1024, price: 0.05 }
        - { quality: high, price: 0.25 }
        - { price: 0.1 }
`;
    const yaml = full.replace(/price: \{ image: .*\n/, table);
    const model = loadText(yaml, { ...secrets, kinds: allKinds }).models.get(
      "black-forest-labs/flux",
    );
    expect(model?.prices[0]?.price).toMatchObject({
      image: 250_000_000n,
      images: [
        { size: "1024x1024", quality: "low", image: 10_000_000n },
        { size: "1024x1024", quality: undefined, image: 50_000_000n },
        { size: undefined, quality: "high", image: 250_000_000n },
        { size: undefined, quality: undefined, image: 100_000_000n },
      ],
    });
  });

  it("becomes prices by time, tiers, and vendor costs", () => {
    const dated = `price:
      - { input: 1, output: 2 }
      - { from: 2026-07-01, input: 2, output: 3, reasoning: 1, cache_write_1h: 4 }
      - from: "2999-12-31T23:30:00.5+02:00"
        input: 3
        output: 4
        tiers: [{ above: 200000, input: 6, cache_write_1h: 12, cached_input: 0.5 }, { above: 500000, output: 9 }]
`;
    const yaml = full
      .replace(/price: \{ input: 0.15.*\n/, dated)
      .replace("model: gpt-5-mini }", "model: gpt-5-mini, cost: { input: 0.5, output: 1 } }");
    const model = loadText(yaml, { ...secrets, kinds: allKinds }).models.get("gpt-5-mini");
    const usd = 1_000_000_000n;
    expect(model?.prices).toMatchObject([
      { fromMs: -Infinity, price: { input: usd, output: 2n * usd, tiers: undefined } },
      {
        fromMs: Date.UTC(2026, 6, 1),
        price: { input: 2n * usd, reasoning: usd, cacheWrite1h: 4n * usd },
      },
      {
        fromMs: Date.UTC(2999, 11, 31, 21, 30, 0, 500),
        price: {
          input: 3n * usd,
          tiers: [
            {
              above: 200_000,
              input: 6n * usd,
              cacheWrite1h: 12n * usd,
              cachedInput: usd / 2n,
              output: undefined,
            },
            { above: 500_000, input: undefined, output: 9n * usd },
          ],
        },
      },
    ]);
    expect(model?.routes).toMatchObject([
      { vendor: "openai", costs: [{ fromMs: -Infinity, price: { input: usd / 2n, output: usd } }] },
    ]);
  });

  it("has no warnings, and names its source", () => {
    expect(config.warnings).toEqual([]);
    expect(config).toMatchObject({ source: "uas.yaml", isDemo: false });
    expect(config.webhooks).toEqual({ allowHosts: ["hooks.test"], caFile: undefined });
  });

  it("may share values by anchors", () => {
    const shared = full
      .replace("price: { input", "price: &cheap { request: 0, input")
      .replace('price: { image: "0.003" }', "price: *cheap");
    const models = loadText(shared, { ...secrets, kinds: allKinds }).models;
    expect(models.get("black-forest-labs/flux")?.prices[0]?.price.input).toBe(150_000_000n);
  });

  it("loads without the vendors' secrets for commands that call no vendor", () => {
    const loose = loadText(full, { kinds: allKinds, unresolved: "placeholder" });
    expect(loose.models.size).toBe(2);
    expect(loose.vendors.get("openai")?.baseUrl).toBe("https://unresolved.invalid/v1");
  });
});

describe("holds and disconnects", () => {
  const real = { env: { K: "k" }, kinds: realKinds };
  const text = (model: string, vendor = "kind: openai"): string => `version: 1
vendors: { v: { ${vendor}, base_url: "https://v.test", api_key: "\${env:K}" } }
models: { m: { type: TEXT, routes: [{ vendor: v, model: x }], ${model}, price: { input: 1, output: 2 } } }
`;

  it.each([
    ["max_output_tokens: 8192", 2_048],
    ["max_output_tokens: 100", 100],
    ["max_output_tokens: 8192, hold_output_tokens: 512", 512],
    ["max_output_tokens: 100, hold_output_tokens: 512", 100],
  ])("R-MON-5: %s holds for %d tokens in advance", (model, tokens) => {
    expect(loadText(text(model), real).models.get("m")?.holdOutputTokens).toBe(tokens);
  });

  it.each([
    ["kind: openai", "grace"],
    ["kind: gemini", "drain"],
    ["kind: openai, on_disconnect: abort", "abort"],
    ["kind: gemini, on_disconnect: abort", "abort"],
    ["kind: openai, on_disconnect: drain", "drain"],
  ])("R-MON-11: when a client disconnects from { %s }, the policy is %s", (vendor, policy) => {
    const config = loadText(text("max_output_tokens: 9", vendor), real);
    expect(config.vendors.get("v")?.onDisconnect).toBe(policy);
  });
});

it("R-MON-11: a vendor's grace and a model that reasons are read, and are off by default", () => {
  const yaml = (vendor: string, model: string): string => `version: 1
vendors: { v: { kind: openai-compatible, base_url: "https://v.test"${vendor} } }
models: { m: { type: TEXT, routes: [{ vendor: v, model: x }], max_output_tokens: 9, price: { input: 1, output: 2 }${model} } }
`;
  const plain = loadText(yaml("", ""));
  expect(plain.vendors.get("v")?.disconnectGraceMs).toBeUndefined();
  expect(plain.models.get("m")?.isReasoning).toBe(false);
  const set = loadText(yaml(", disconnect_grace: 8s", ", reasoning: true"));
  expect(set.vendors.get("v")?.disconnectGraceMs).toBe(8_000);
  expect(set.models.get("m")?.isReasoning).toBe(true);
});

it("R-TXT-13: a vendor's unknown_betas is read, and absent by default", () => {
  const yaml = (vendor: string): string => `version: 1
vendors: { v: { kind: openai-compatible, base_url: "https://v.test"${vendor} } }
models: { m: { type: TEXT, routes: [{ vendor: v, model: x }], max_output_tokens: 9, price: { input: 1, output: 2 } } }
`;
  expect(loadText(yaml("")).vendors.get("v")?.unknownBetas).toBeUndefined();
  const set = loadText(yaml(", unknown_betas: pass"));
  expect(set.vendors.get("v")?.unknownBetas).toBe("pass");
});

describe("where the configuration comes from", () => {
  const load = (cwd: string, env: Record<string, string> = {}, path?: string) =>
    loadConfig({ env, cwd, kinds: servedKinds, path });

  it("is the built-in demo where there is no file", () => {
    withFolder((cwd) => {
      const config = loadConfig({ env: {}, cwd, kinds: realKinds });
      expect(config).toMatchObject({ source: "built-in demo", isDemo: true, warnings: [] });
      expect([...config.models.keys()]).toEqual([
        "demo-chat",
        "demo/instant",
        "demo-image",
        "demo-audio",
        "demo-embedding",
        "demo-rerank",
        "demo-moderation",
      ]);
      expect(config.models.get("demo-chat")).toMatchObject({
        routes: [{ vendor: "demo", model: "chat" }],
        maxOutputTokens: 1024,
        holdOutputTokens: 1024,
        prices: [
          { price: { input: 250_000_000n, cachedInput: 25_000_000n, output: 2_000_000_000n } },
        ],
      });
    });
  });

  it("is the named path, else UAS_CONFIG, else uas.yaml", () => {
    withFolder((cwd) => {
      for (const name of ["uas.yaml", "b.yaml", "c.yaml"]) {
        writeFileSync(join(cwd, name), "version: 1\nvendors: {}\nmodels: {}\n");
      }
      expect(load(cwd).source).toBe("uas.yaml");
      expect(load(cwd, { UAS_CONFIG: "b.yaml" }).source).toBe("b.yaml");
      expect(load(cwd, { UAS_CONFIG: "b.yaml" }, "c.yaml").source).toBe("c.yaml");
      expect(load(cwd, { UAS_CONFIG: "" }).source).toBe("uas.yaml");
    });
  });

  it("fails clearly where the named file is missing, a folder, or no text", () => {
    withFolder((cwd) => {
      writeFileSync(join(cwd, "bad.yaml"), Buffer.from([0xff, 0xfe, 0x00]));
      const message = (path: string) => {
        try {
          return load(cwd, {}, path).source;
        } catch (error) {
          return error instanceof ConfigError ? error.message : error;
        }
      };
      expect(message("none.yaml")).toBe("none.yaml: does not exist; name another with UAS_CONFIG");
      expect(message(".")).toBe(".: is a folder; name the file");
      expect(message("bad.yaml")).toBe("bad.yaml: is not valid UTF-8 text");
    });
  });
});

describe("what this version cannot serve", () => {
  const yaml = `version: 1
vendors:
  claude: { kind: anthropic, base_url: https://api.anthropic.com, api_key: "\${env:KEY}" }
  local: { kind: openai-compatible, base_url: http://127.0.0.1:1/v1, dialects: [chat-completions, responses] }
  mute: { kind: openai-compatible, base_url: http://127.0.0.1:1/v1, dialects: [messages] }
models:
  both: { type: TEXT, routes: [{ vendor: claude, model: c }, { vendor: local, model: l }], max_output_tokens: 9, price: { input: 1, output: 1 } }
  away: { type: TEXT, routes: [{ vendor: claude, model: c }, { vendor: mute, model: l }], max_output_tokens: 9, price: { input: 1, output: 1 } }
  clip: { type: VIDEO, routes: [{ vendor: local, model: v }], price: { second: 1 } }
`;
  const config = loadText(yaml, { env: { KEY: "k" } });

  it("causes a warning and is not listed; the rest is served", () => {
    expect(config.warnings).toEqual([
      "uas.yaml:3:11 vendors.claude: this version cannot serve kind anthropic yet: routes to it are not used",
      "uas.yaml:4:99 vendors.local.dialects[1]: this version does not speak responses with this kind (it speaks: chat-completions): the dialect is not used",
      "uas.yaml:5:80 vendors.mute.dialects[0]: this version does not speak messages with this kind (it speaks: chat-completions): the dialect is not used",
      'uas.yaml:7:32 models.both.routes[0]: not used: this version cannot serve kind anthropic (vendor "claude") yet',
      'uas.yaml:8:9 models.away: not listed, calls answer 404: this version cannot serve kind anthropic (vendor "claude"); TEXT models of vendor "mute" yet',
      'uas.yaml:9:9 models.clip: not listed, calls answer 404: this version cannot serve VIDEO models of vendor "local" yet',
    ]);
    expect([...config.vendors.keys()]).toEqual(["local", "mute"]);
    expect(config.vendors.get("local")?.dialects).toEqual(["chat-completions"]);
    expect([...config.models.keys()]).toEqual(["both"]);
    expect(config.models.get("both")?.routes).toEqual([{ vendor: "local", model: "l" }]);
  });

  it("causes a warning where no model is left to call", () => {
    expect(loadText("version: 1\nvendors: {}\nmodels: {}\n").warnings).toEqual([
      "uas.yaml:3:9 models: no model can be called: every call will answer 404",
    ]);
  });

  it("causes a warning where the first of a list of prices or costs is yet to come", () => {
    const list =
      "[{ from: 2999-01-01, input: 1, output: 1 }, { from: 2999-02-01, input: 2, output: 2 }]";
    const priced = `version: 1
vendors:
  local: { kind: openai-compatible, base_url: http://127.0.0.1:1/v1 }
  claude: { kind: anthropic, base_url: https://api.anthropic.com, api_key: "\${env:KEY}" }
models:
  m: { type: TEXT, routes: [{ vendor: claude, model: c, cost: ${list} }, { vendor: local, model: l, cost: ${list} }], max_output_tokens: 9, price: ${list} }
`;
    const message =
      "is in the future by this machine's clock, and this price applies until then too: put the current price before it, without from";
    const { warnings } = loadText(priced, { env: { KEY: "k" } });
    // Nothing is said of the costs of a route that is not served.
    expect(warnings.filter((warning) => warning.includes("is in the future"))).toEqual([
      `uas.yaml:6:195 models.m.routes[1].cost[0].from: ${message}`,
      `uas.yaml:6:315 models.m.price[0].from: ${message}`,
    ]);
  });
});

it("loading reports everything that is wrong at once, in the order of the file", () => {
  const yaml = `version: 2
vendors:
  acme: { kind: openai-compatibel, base_url: https://x.example }
  open:
    kind: openai-compatible
    base_url: ftp://x.example
    api_key: \${env:ACME_KEY}
    timeout: { connect: 5 }
models:
  fast-1: { type: text, routes: [{ vendor: acmee, model: m }], price: { input: -1, output: 1e3 } }
  gpt-4.1: { type: TEXT, routes: [], max_output_tokens: 0 }
webhook: {}
`;
  expect(problemsOf(yaml)).toEqual([
    "uas.yaml:1:10 version: this program reads version 1 only; write version: 1",
    'uas.yaml:3:17 vendors.acme.kind: "openai-compatibel" is not known, did you mean "openai-compatible"?',
    "uas.yaml:6:15 vendors.open.base_url: must be an address such as https://api.example.com/v1",
    "uas.yaml:7:14 vendors.open.api_key: environment variable ACME_KEY is not set",
    'uas.yaml:8:5 vendors.open.timeout: unknown key, did you mean "timeouts"?',
    'uas.yaml:10:19 models.fast-1.type: "text" is not known, did you mean "TEXT"?',
    'uas.yaml:10:44 models.fast-1.routes[0].vendor: no vendor "acmee", did you mean "acme"? (have: acme, open)',
    'uas.yaml:10:80 models.fast-1.price.input: "-1" is not a price: write US dollars as a decimal number such as "0.25", at most 9 digits after the point, without sign or exponent',
    'uas.yaml:10:92 models.fast-1.price.output: "1e3" is not a price: write US dollars as a decimal number such as "0.25", at most 9 digits after the point, without sign or exponent',
    'uas.yaml:11:12 models["gpt-4.1"]: price is missing: add price: { input: "0.25", output: "2.00" } in USD per 1,000,000 tokens',
    'uas.yaml:11:34 models["gpt-4.1"].routes: name at least one route',
    'uas.yaml:11:57 models["gpt-4.1"].max_output_tokens: must be a whole number from 1 to 2147483647, without quotes, sign or point',
    'uas.yaml:12:1 webhook: unknown key, did you mean "webhooks"?',
  ]);
});
