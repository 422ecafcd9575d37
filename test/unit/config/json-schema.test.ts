import { globSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { demoYaml } from "../../../src/config/demo-config.ts";
import {
  configJsonSchema,
  type JsonSchema,
  linkedJsonSchema,
} from "../../../src/config/json-schema.ts";
import { presets } from "../../../src/config/presets.ts";
import { servedKinds } from "../../../src/provider/index.ts";
import { problemsOf } from "./support.ts";

const schema = configJsonSchema(servedKinds);
const accepts: ValidateFunction = new Ajv2020({
  strict: true,
  strictRequired: false,
  allowUnionTypes: true,
}).compile(schema);
const env = { KEY: "k", SMTP_URL: "smtp://u:p@mail.test" };

/** Whether the schema and the validator of the gateway accept a text. */
function verdicts(yaml: string): readonly [schema: boolean, validator: boolean] {
  return [accepts(parse(yaml)), problemsOf(yaml, { env, kinds: servedKinds }).length === 0];
}

/** One vendor and one model, with parts replaced. */
function file({
  vendor = 'kind: openai, base_url: https://a.example, api_key: "${env:KEY}"',
  type = "type: TEXT, max_output_tokens: 5",
  price = 'input: 1, output: "0.5"',
  model = "",
  tail = "",
} = {}): string {
  return `version: 1
vendors: { a: { ${vendor} } }
models:
  m: { ${type}, routes: [{ vendor: a, model: x }], price: { ${price} }${model} }
${tail}`;
}

/** Lines of each section that the validator accepts. */
const vendors = [
  ...[...servedKinds.keys()].map(
    (kind) => `kind: ${kind}, base_url: "https://\${env:KEY}/v1", api_key: "\${env:KEY}"`,
  ),
  ...[...presets.keys()].map((preset) =>
    preset === "azure-openai"
      ? 'preset: azure-openai, base_url: https://a.example, api_key: "${env:KEY}"'
      : `preset: ${preset}, api_key: "\${env:KEY}"`,
  ),
  'preset: openrouter, credentials: [{ api_key: "${env:KEY}", weight: 2, limits: { rpm: 5 } }]',
  "kind: demo, timeouts: { idle: 5s, total: 24h }, breaker: { failures: 3 }, quirks: ",
  "kind: openai-compatible, base_url: http://a.example, quirks: { prefill: refused }",
];
const types = [
  ["type: IMAGE", "image: [{ size: 1024x1024, price: 0.01 }, { price: 1 }]"],
  ["type: VIDEO, min_seconds: 5, deadline: 1h", "second: 0.5"],
  ["type: AUDIO", "character: 0.00001"],
  ["type: EMBEDDING", "input: 1"],
  ["type: RERANK", 'search: "0.002"'],
  ["type: MODERATION", "input: 0"],
  [
    "type: TEXT, max_output_tokens: 5, reasoning: true",
    "input: 1, output: 2, tools: { web_search: 0.01 }, tiers: [{ above: 9, input: 2 }]",
  ],
] as const;
const tails = [
  "limits: { key: { rpm: 5 }, wait: 5s, uploads: { objects_per_day: 0 } }",
  "limits:",
  "retention: { calls: 400d }",
  'storage: { kind: s3, region: eu-central-1, bucket: files, access_key_id: "${env:KEY}", secret_access_key: "${env:KEY}", force_path_style: true }',
  "storage: { kind: local }",
  "console: { sign_up: false }",
  "sms: { provider: console, countries: [DE, cn], daily_max: 10 }",
  'sms: { provider: http, url: https://a.example, token: "${env:KEY}" }',
  'smtp: { url: "${env:SMTP_URL}", from: UAS <no-reply@example.com> }',
  "cors: { origins: [https://app.example] }",
  "webhooks: { allow_hosts: [hooks.test] }",
];

describe("the JSON Schema", () => {
  it.each([
    demoYaml,
    ...vendors.map((vendor) => file({ vendor })),
    ...types.map(([type, price]) => file({ type, price })),
    ...tails.map((tail) => file({ tail })),
    file({ model: ", tiers: { flex: { input: 0.5 } }, retry: { attempts: 1, within: 5s }" }),
    file({ vendor: 'preset: openrouter, api_key: "${secret:openrouter}"' }),
    file({ model: ", name: 4.1, hold_output_tokens: 3, cancel_billing: none" }),
    file().replace("price: {", "price: [{ from: 2020-01-01,").replace(' "0.5" }', ' "0.5" }]'),
  ])("a file that the gateway accepts passes the JSON Schema (%#)", (yaml) => {
    expect(verdicts(yaml), JSON.stringify(accepts.errors)).toEqual([true, true]);
  });

  it("a file whose vendors and models are in included files passes the JSON Schema", () => {
    const verdict = (yaml: string) => accepts(parse(yaml));
    expect([verdict("version: 1\ninclude: [a.yaml]"), verdict("version: 1\nvendors: {}")]).toEqual([
      true,
      false,
    ]);
  });

  it.each([
    ["an unknown key of the file", file({ tail: "vendor: {}" })],
    ["an unknown key of a vendor", file({ vendor: "kind: demo, apikey: x" })],
    ["an unknown key of a model", file({ model: ", deadlin: 2h" })],
    ["an unknown key of a route", file().replace("model: x", "model: x, wieght: 1")],
    ["an unknown price unit", file({ price: "input: 1, output: 1, outptu: 1" })],
    ["a vendor without kind", file({ vendor: "base_url: https://a.example" })],
    ["a vendor without address", file({ vendor: 'kind: dashscope, api_key: "${env:KEY}"' })],
    ["a vendor without credential", file({ vendor: "kind: openai, base_url: https://a.example" })],
    ["a literal secret", file({ vendor: "preset: openrouter, api_key: sk-1" })],
    [
      "a credential twice",
      file({
        vendor: 'preset: groq, api_key: "${env:KEY}", credentials: [{ api_key: "${env:KEY}" }]',
      }),
    ],
    ["an unknown kind", file({ vendor: "kind: opnai" })],
    ["an unknown preset", file({ vendor: "preset: opnrouter" })],
    ["a kind that is not the preset's", file({ vendor: "preset: ollama, kind: fal" })],
    ["a key of another kind", file({ vendor: "kind: demo, run_base_url: https://a.example" })],
    ["a model without type", file({ type: "max_output_tokens: 5" })],
    ["a text model without a maximum", file({ type: "type: TEXT" })],
    ["a unit of another type", file({ price: "input: 1, output: 1, image: 1" })],
    ["a video without price", file({ type: "type: VIDEO", price: "input: 1" })],
    ["a text for a number", file({ type: "type: TEXT, max_output_tokens: many" })],
    ["a number for a duration", file({ model: ", deadline: 1800" })],
    ["a list for a map", file({ tail: "limits: []" })],
    ["a map for a list", file().replace("[{ vendor: a, model: x }]", "{ vendor: a, model: x }")],
    ["a price with a sign", file({ price: "input: -1, output: 1" })],
    ["no version", file().replace("version: 1", "")],
    ["a section without its provider", file({ tail: "sms: { daily_max: 5 }" })],
  ])("the JSON Schema of uas.yaml refuses %s, as the gateway does", (_case, yaml) => {
    expect(verdicts(yaml)).toEqual([false, false]);
  });

  it("schema and gateway agree on drawn combinations of sections, and refuse each with an unknown key", () => {
    const drawn = fc.record({
      vendor: fc.constantFrom(...vendors),
      typed: fc.constantFrom(...types),
      tails: fc.uniqueArray(fc.constantFrom(...tails), { selector: (tail) => tail.split(":")[0] }),
      wrongIn: fc.constantFrom("nothing", "vendor", "model", "price", "file"),
    });
    fc.assert(
      fc.property(drawn, ({ vendor, typed: [type, price], tails: chosen, wrongIn }) => {
        const wrong = (part: string): string => (part === wrongIn ? ", unknown_key: 1" : "");
        const yaml = file({
          vendor: `${vendor.replace(/, quirks: $/, "")}${wrong("vendor")}`,
          type: `${type}${wrong("model")}`,
          price: `${price}${wrong("price")}`,
          tail: [...chosen, ...(wrongIn === "file" ? ["unknown_key: 1"] : [])].join("\n"),
        });
        const isRight = wrongIn === "nothing";
        expect(verdicts(yaml), JSON.stringify(accepts.errors)).toEqual([isRight, isRight]);
      }),
      { numRuns: 200 },
    );
  });

  const root = join(import.meta.dirname, "../../..");
  it.each(globSync("examples/**/uas.yaml", { cwd: root }))(
    "editors find the JSON Schema of %s in its first line, and it is valid",
    (path) => {
      const text = readFileSync(join(root, path), "utf8");
      const [, named = ""] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text) ?? [];
      expect(relative(root, join(root, path, "..", named))).toBe("docs/reference/uas-schema.json");
      expect(accepts(parse(text)), JSON.stringify(accepts.errors)).toBe(true);
    },
  );

  it("the JSON Schema describes every key of uas.yaml", () => {
    const silent: string[] = [];
    const visit = (json: JsonSchema, path: string): void => {
      for (const [name, member] of Object.entries(json.properties ?? {})) {
        if (typeof member !== "object") continue;
        if (member.description === undefined) silent.push(`${path}.${name}`);
        visit(member, `${path}.${name}`);
      }
      for (const inner of [json.items, json.additionalProperties]) {
        if (typeof inner === "object" && !Array.isArray(inner)) visit(inner, path);
      }
    };
    visit(linkedJsonSchema(servedKinds), "");
    expect(silent).toEqual([]);
  });

  it("docs/reference/uas-schema.json, which the package contains, is the JSON Schema of this version", () => {
    const published = join(root, "docs/reference/uas-schema.json");
    expect(JSON.parse(readFileSync(published, "utf8"))).toEqual(JSON.parse(JSON.stringify(schema)));
  });
});
