import { describe, expect, it } from "vitest";
import { knownKinds } from "../../../src/config/kinds.ts";
import { presets } from "../../../src/config/presets.ts";
import { allKinds, loadText, problemsOf } from "./support.ts";

const file = (vendor: string, model = "") =>
  `version: 1\nvendors:\n  v: { ${vendor} }\nmodels: {${model}}\n`;
const text = (rest = "") =>
  `m: { type: TEXT, routes: [{ vendor: v, model: x${rest} }], max_output_tokens: 9, price: { input: "1", output: "1" } }`;
const kinds = allKinds;

describe("each preset", () => {
  it.each([...presets])("the preset %s is complete, and names its source", (_name, preset) => {
    expect(knownKinds).toContain(preset.kind);
    expect(new URL(preset.source).protocol).toBe("https:");
    if (preset.baseUrl === "") return;
    const { protocol, hostname, pathname } = new URL(preset.baseUrl);
    const isLocal = hostname === "127.0.0.1";
    expect([protocol, preset.needsApiKey]).toEqual(isLocal ? ["http:", false] : ["https:", true]);
    expect(pathname === "/" || !pathname.endsWith("/")).toBe(true);
  });
});

describe("a vendor without base_url", () => {
  it.each([
    ["kind: openai", "https://api.openai.com/v1"],
    ["preset: openai", "https://api.openai.com/v1"],
    ["kind: anthropic", "https://api.anthropic.com"],
    ["kind: gemini", "https://generativelanguage.googleapis.com"],
    ["kind: replicate", "https://api.replicate.com"],
    ["kind: fal", "https://queue.fal.run"],
    ["preset: dashscope-intl", "https://dashscope-intl.aliyuncs.com"],
  ])("a vendor with { %s } has the public address %s", (vendor, address) => {
    const yaml = file(`${vendor}, api_key: "\${env:K}"`);
    expect(loadText(yaml, { env: { K: "k" }, kinds }).vendors.get("v")?.baseUrl).toBe(address);
  });

  it.each([
    ["openai-compatible", /base_url is missing: add its address/],
    ["dashscope", /base_url is missing: add base_url: https:\/\/dashscope-intl.aliyuncs.com, or/],
  ])("kind %s needs an address", (kind, message) => {
    const problems = problemsOf(file(`kind: ${kind}, api_key: "\${env:K}"`), {
      env: { K: "k" },
      kinds,
    });
    expect(problems).toEqual([expect.stringMatching(message)]);
  });
});

describe("a vendor with a preset", () => {
  it("a vendor with a preset has its kind, address and limit parameter", () => {
    const yaml = file('preset: groq, api_key: "${env:K}"', text());
    const { vendors, models } = loadText(yaml, { env: { K: "k" }, kinds });
    expect(vendors.get("v")).toMatchObject({
      kind: "openai-compatible",
      baseUrl: "https://api.groq.com/openai/v1",
      apiKey: "k",
    });
    expect(models.get("m")?.routes[0]?.limitParameter).toBe("max_completion_tokens");
  });

  it("a vendor with a preset may have another address, and its routes another limit parameter", () => {
    const yaml = file(
      "preset: ollama, base_url: http://10.0.0.5:11434/v1",
      text(", limit_parameter: max_completion_tokens"),
    );
    const { vendors, models } = loadText(yaml, { kinds });
    expect(vendors.get("v")?.baseUrl).toBe("http://10.0.0.5:11434/v1");
    expect(models.get("m")?.routes[0]?.limitParameter).toBe("max_completion_tokens");
  });

  it.each([
    ["preset: groq", /api_key is missing/],
    ['preset: azure-openai, api_key: "${env:K}"', /base_url is missing/],
    ['preset: grog, api_key: "${env:K}"', /"grog" is not known, did you mean "groq"\?/],
    [
      'preset: groq, kind: anthropic, api_key: "${env:K}"',
      /kind: the preset already says the kind, openai-compatible: remove kind/,
    ],
  ])("{ %s } is refused", (vendor, message) => {
    const problems = problemsOf(file(vendor), { env: { K: "k" }, kinds });
    expect(problems).toContainEqual(expect.stringMatching(message));
  });

  it("a vendor with a preset has only models of the types that it offers", () => {
    const model =
      'm: { type: EMBEDDING, routes: [{ vendor: v, model: x }], price: { input: "1" } }';
    const yaml = file('preset: groq, api_key: "${env:K}"', model);
    const config = loadText(yaml, { env: { K: "k" }, kinds });
    expect([...config.models.keys()]).toEqual([]);
    expect(config.warnings.join()).toContain("EMBEDDING");
  });
});
