import { findProvider } from "@pydantic/genai-prices";
import { describe, expect, it } from "vitest";
import type { PriceConfig, VendorConfig } from "../../../src/config/config.ts";
import { modelTypes } from "../../../src/config/kinds.ts";
import { priceMembers } from "../../../src/cli/price-import/price-text.ts";
import { PriceRefusal } from "../../../src/cli/price-import/source.ts";
import { providerOf, providerRows } from "../../../src/cli/price-import/vendor-names.ts";
import { readQuote } from "../../../src/cli/price-import/quote.ts";
import { priceUnits, unitsOfType } from "../../../src/config/price-units.ts";
import { allKinds, problemsOf } from "../../unit/config/support.ts";
import { oneModel } from "./price-world.ts";

/** The problems of a configuration with this price. */
function problemsOfPrice(price: object, type: string): readonly string[] {
  const yaml = oneModel("", JSON.stringify(price), type);
  return problemsOf(yaml, { env: { KEY: "k" }, kinds: allKinds });
}

const fields = [
  "input_mtok",
  "cache_read_mtok",
  "output_mtok",
  "output_reasoning_mtok",
  "audio_hours",
  "requests_kcount",
];

/** Every choice of the fields. */
const choices = Array.from({ length: 2 ** fields.length }, (_, bits) =>
  fields.filter((_name, index) => (bits & (1 << index)) !== 0),
);

describe.each([...modelTypes])("prices of %s models", (word, type) => {
  it("can have exactly the units that the configuration accepts for the type", () => {
    const allowed = unitsOfType(type);
    const base = allowed.some(({ key }) => key === "output") ? { output: "1" } : {};
    for (const unit of priceUnits) {
      const { name } = unit;
      const [head = "", tool] = name.split(".");
      const price = { ...base, input: "1", [head]: tool === undefined ? "1" : { [tool]: "1" } };
      const problems = problemsOfPrice(price, word);
      expect({ name, isAccepted: problems.length === 0 }).toEqual({
        name,
        isAccepted: allowed.includes(unit),
      });
    }
  });

  it("are imported where, and only where, the configuration accepts what is written", () => {
    for (const chosen of choices) {
      const map = new Map(chosen.map((field) => [field, "3600"]));
      const entry = {
        name: "x",
        match: "same name",
        prices: [{ fromMs: -Infinity, bands: [{ above: 0, fields: map }] }],
      };
      let written: object | undefined;
      try {
        const quote = readQuote(entry, { format: "genai-prices", type, nowMs: 0 });
        written = priceMembers(quote.prices)[0];
      } catch (error) {
        if (!(error instanceof PriceRefusal)) throw error;
      }
      const allowed = unitsOfType(type);
      const keys = fieldKeys(chosen).filter((key) => allowed.some((each) => each.key === key));
      const price = Object.fromEntries(keys.map((key) => [key, 1n])) as unknown as PriceConfig;
      const [possible = {}] = priceMembers([{ fromMs: -Infinity, price }]);
      const isAccepted = problemsOfPrice(written ?? possible, word).length === 0;
      expect({ chosen, isAccepted }).toEqual({ chosen, isAccepted: written !== undefined });
    }
  });
});

function fieldKeys(chosen: readonly string[]): readonly string[] {
  const keys = ["input", "cachedInput", "output", "reasoning", "second", "request"];
  return chosen.map((field) => keys[fields.indexOf(field)] ?? "");
}

describe("the table of providers", () => {
  it.each(
    providerRows.filter((row) => "genai-prices" in row).map((row) => [row.host, row] as const),
  )("names a provider for %s that genai-prices has", (_, row) => {
    const provider = findProvider({ providerId: row["genai-prices"] ?? "" });
    expect(provider?.id).toBe(row["genai-prices"]);
    const hosts = providerRows
      .filter((each) => each["genai-prices"] === provider?.id)
      .map(({ host }) => (host.startsWith(".") ? `acme${host}` : host));
    const pattern = new RegExp(`^(?:${provider?.api_pattern})`);
    expect(hosts.some((host) => pattern.test(`https://${host}/v1`))).toBe(true);
  });

  const vendor = (kind: string, baseUrl: string) =>
    ({ name: "v", kind, baseUrl }) as unknown as VendorConfig;

  it.each([
    ["openai", "https://api.openai.com/v1", "openai", "openai"],
    ["openai", "https://acme.openai.azure.com/openai/v1", "azure", "azure"],
    ["anthropic", "https://api.anthropic.com", "anthropic", "anthropic"],
    ["gemini", "https://generativelanguage.googleapis.com", "google", "google"],
    ["dashscope", "https://dashscope.aliyuncs.com", undefined, "alibaba-cn"],
    ["dashscope", "https://dashscope-intl.aliyuncs.com", undefined, "alibaba"],
    ["dashscope", "https://proxy.example.com", undefined, undefined],
    ["replicate", "https://api.replicate.com", undefined, undefined],
    ["fal", "https://queue.fal.run", undefined, undefined],
    ["openai-compatible", "https://api.deepseek.com", "deepseek", "deepseek"],
    ["openai-compatible", "https://api.groq.com/openai/v1", "groq", "groq"],
    ["openai-compatible", "https://api.mistral.ai/v1", "mistral", "mistral"],
    ["openai-compatible", "https://api.x.ai/v1", "x-ai", "xai"],
    ["openai-compatible", "https://api.together.xyz/v1", "together", "togetherai"],
    ["openai-compatible", "https://api.fireworks.ai/inference/v1", "fireworks", "fireworks-ai"],
    ["openai-compatible", "https://openrouter.ai/api/v1", "openrouter", "openrouter"],
    ["openai-compatible", "https://api.openai.com.example.org/v1", undefined, undefined],
    ["openai-compatible", "http://127.0.0.1:11434/v1", undefined, undefined],
  ])("the table of providers maps %s at %s", (kind, baseUrl, genaiPrices, modelsDev) => {
    const found = (format: "genai-prices" | "models.dev") => {
      try {
        return providerOf(vendor(kind, baseUrl), format).id;
      } catch (error) {
        if (error instanceof PriceRefusal && error.status === "missing") return undefined;
        throw error;
      }
    };
    expect([found("genai-prices"), found("models.dev")]).toEqual([genaiPrices, modelsDev]);
  });

  it("takes a proxy for the company of its kind, with a notice", () => {
    expect(providerOf(vendor("openai", "https://proxy.example.com/v1"), "models.dev")).toEqual({
      id: "openai",
      assumption: "proxy.example.com charges what openai does, as its kind is openai",
    });
  });
});
