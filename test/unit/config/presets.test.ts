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
    ['preset: groq, kind: anthropic, api_key: "${env:K}"', /kind: "anthropic" is not known/],
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
