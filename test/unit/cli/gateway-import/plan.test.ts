import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { loadConfig } from "../../../../src/config/load.ts";
import { readLitellm } from "../../../../src/cli/gateway-import/litellm.ts";
import { readNewApi } from "../../../../src/cli/gateway-import/new-api.ts";
import { planImport } from "../../../../src/cli/gateway-import/plan.ts";
import type { ImportSource } from "../../../../src/cli/gateway-import/source.ts";
import { planYaml, reportLines } from "../../../../src/cli/gateway-import/yaml.ts";
import { bundledSource } from "../../../../src/cli/price-import/genai-prices.ts";
import { servedKinds } from "../../../../src/provider/index.ts";

const list = bundledSource();

function written(source: ImportSource): { yaml: string; report: string } {
  const options = { list, marginPpm: 200_000n, maxOutputTokens: undefined, nowMs: 0 };
  const plan = planImport(source, { ...options, kinds: servedKinds });
  const yaml = planYaml(plan, "test");
  // Without a vendor the command ends with an error.
  if (plan.vendors.length > 0) {
    const env = Object.fromEntries([...plan.variables.keys()].map(asAddress));
    const document = { source: "uas.yaml", content: yaml };
    expect(loadConfig({ document, env, cwd: "/", kinds: servedKinds }).vendors.size).toBe(
      plan.vendors.length,
    );
  }
  return { yaml, report: reportLines(plan).join("\n") };
}

/** A value that is both a credential and an address, different for each variable. */
function asAddress(name: string): [string, string] {
  return [name, `https://${name.toLowerCase().replaceAll("_", "-")}.example`];
}

const secret = fc.stringMatching(/^SECRET[a-f0-9]{8}$/);
const number = fc.oneof(fc.integer({ min: -1, max: 10_000 }), fc.constantFrom("7", "0.5", "x", ""));
const name = fc.oneof(
  fc.constantFrom("gpt-5-mini", "claude", "my model", "../x", "é", "a#b: c", "*", "openai/*"),
  fc.string({ maxLength: 12 }),
);
const address = fc.oneof(
  fc.constantFrom("os.environ/BASE", "http://127.0.0.1:1/v1/", "nonsense", ""),
  secret.map((key) => `https://user:${key}@host.example/v1?key=${key}#${key}`),
);
const vendorModel = fc.oneof(
  name,
  fc
    .tuple(
      fc.constantFrom("openai", "azure", "ollama", "cohere", "bedrock", "litellm_proxy", "fal_ai"),
      fc.constantFrom("gpt-5-mini", "rerank-v3.5", "*", "x/y"),
    )
    .map((parts) => parts.join("/")),
);
const optional = { requiredKeys: [] };

const litellmEntry = fc.record(
  {
    model_name: name,
    litellm_params: fc.record(
      {
        model: vendorModel,
        api_key: fc.oneof(secret, fc.constantFrom("os.environ/KEY", "os.environ/a b")),
        api_base: address,
        rpm: number,
        tpm: number,
        weight: number,
        order: number,
        aws_secret_access_key: secret,
      },
      optional,
    ),
    model_info: fc.record(
      {
        mode: fc.constantFrom("chat", "embedding", "rerank", "image_generation", "other"),
        max_tokens: number,
        input_cost_per_token: fc.oneof(number, fc.constant(0.00000025), fc.constant("2.5e-07")),
        output_cost_per_token: number,
      },
      optional,
    ),
  },
  optional,
);

const channel = fc.record(
  {
    id: number,
    type: fc.oneof(fc.constantFrom(1, 3, 4, 14, "24", 34, 40, 47, 56, 99), number),
    status: fc.constantFrom(1, 1, "1", 2),
    key: fc.oneof(
      secret,
      fc.array(secret).map((keys) => keys.join("\n")),
      fc.constant(null),
    ),
    base_url: fc.oneof(address, fc.constant(null)),
    models: fc.array(name).map((names) => names.join(",")),
    weight: number,
    priority: number,
    model_mapping: fc.constantFrom('{"claude":"gpt-5-mini"}', "{", null, '{"a":"b","b":"a"}'),
    channel_info: fc.constantFrom('{"is_multi_key":true}', { is_multi_key: true }, null),
    header_override: secret.map((key) => JSON.stringify({ authorization: key })),
  },
  { requiredKeys: ["type", "models"] },
);

describe("import of other gateways", () => {
  it("every imported LiteLLM configuration is valid and repeats no credential of the source", () => {
    const file = fc.record({
      model_list: fc.array(litellmEntry, { minLength: 1, maxLength: 6 }),
      litellm_settings: fc.record({ fallbacks: fc.array(fc.dictionary(name, fc.array(name))) }),
      general_settings: fc.record({ master_key: secret }),
      environment_variables: fc.dictionary(fc.constantFrom("A", "B"), secret),
    });
    const check = fc.property(file, (value) => {
      const { yaml, report } = written(readLitellm(stringify(value), "config.yaml"));
      expect(yaml + report).not.toContain("SECRET");
    });
    fc.assert(check, { numRuns: 100 });
  });

  it("every imported list of channels is valid and repeats no credential of the source", () => {
    const ratios = fc.dictionary(name, number).map((values) => JSON.stringify(values));
    const options = { ModelRatio: ratios, CompletionRatio: ratios, ModelPrice: ratios };
    const file = fc.record({
      channels: fc.array(channel, { maxLength: 6 }),
      options: fc.record({ ...options, GroupRatio: ratios }),
    });
    const check = fc.property(file, (value) => {
      const { yaml, report } = written(readNewApi(JSON.stringify(value), "channels.json"));
      expect(yaml + report).not.toContain("SECRET");
    });
    fc.assert(check, { numRuns: 100 });
  });
});
