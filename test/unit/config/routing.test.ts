import { describe, expect, it } from "vitest";
import { allKinds, loadText, problemsOf } from "./support.ts";

const env = { A: "sk-aaa", B: "sk-bbb", AGAIN: "sk-aaa" };

/** Two vendors and two models, with parts replaced. */
function file({
  credentials = '[{ api_key: "${env:A}" }, { api_key: "${env:B}" }]',
  vendor = "",
  routes = "[{ vendor: a, model: x }, { vendor: b, model: x }]",
  model = "",
} = {}): string {
  const price = "max_output_tokens: 5, price: { input: 1, output: 1 }";
  return `version: 1
vendors:
  a:
    kind: openai
    base_url: https://a.example/v1
    credentials: ${credentials}${vendor}
  b: { kind: openai-compatible, base_url: https://b.example/v1 }
models:
  m: { type: TEXT, routes: ${routes}, ${price}${model} }
  other: { type: TEXT, routes: [{ vendor: b, model: y }], ${price} }
  picture: { type: IMAGE, routes: [{ vendor: a, model: z }], price: { image: 1 } }
`;
}

const load = (yaml: string) => loadText(yaml, { env, kinds: allKinds });
const problems = (yaml: string) => problemsOf(yaml, { env, kinds: allKinds });

describe("settings of routing", () => {
  it("give each credential a name that may be shown, a weight, a priority and limits", () => {
    const credentials =
      '[{ api_key: "${env:A}", weight: 70, limits: { rpm: 5, tpm: 6, concurrency: 7 } }, { api_key: "${env:B}", priority: 1 }]';
    const vendor = load(file({ credentials })).vendors.get("a");
    const limits = { rpm: 5, tpm: 6, concurrency: 7 };
    expect(vendor?.apiKey).toBe("sk-aaa");
    expect(vendor?.credentials).toEqual([
      { name: "A", apiKey: "sk-aaa", weight: 70, priority: 0, limits },
      { name: "B", apiKey: "sk-bbb", weight: 1, priority: 1 },
    ]);
  });

  it("give routes a weight, a priority and a longest context", () => {
    const routes =
      "[{ vendor: a, model: x, weight: 0, max_context: 8000 }, { vendor: b, model: x, priority: 2 }, { vendor: b, model: y, weight: 3 }]";
    expect(load(file({ routes })).models.get("m")?.routes).toMatchObject([
      { vendor: "a", weight: 0, maxContext: 8_000 },
      { vendor: "b", priority: 2 },
      { vendor: "b", weight: 3 },
    ]);
  });

  it("have defaults for the parts of a breaker and of retries that are left out", () => {
    const config = load(
      file({
        vendor: "\n    breaker: { failures: 2, single_route: refuse }",
        model: ", retry: { within: 5s }, fallback_models: [other]",
      }),
    );
    expect(config.vendors.get("a")?.breaker).toEqual({
      ...{ failures: 2, windowMs: 30_000, cooldownMs: 10_000, singleRoute: "refuse" },
    });
    expect(config.models.get("m")).toMatchObject({
      retry: { attempts: 3, withinMs: 5_000 },
      fallbackModels: ["other"],
    });
  });

  const a = 'api_key: "${env:A}"';
  it.each([
    ["no credential", { credentials: "[]" }, /6:\d+ .*name at least one credential$/],
    [
      "a credential without its key",
      { credentials: "[{ weight: 1 }]" },
      /6:\d+ .*api_key is missing/,
    ],
    ["a credential twice", { credentials: `[{ ${a} }, { ${a} }]` }, /6:\d+ .*A is listed twice/],
    [
      "the same value under two names",
      { credentials: `[{ ${a} }, { api_key: "\${env:AGAIN}" }]` },
      /6:\d+ .*AGAIN is listed twice, or has the same value/,
    ],
    [
      "both forms of credentials",
      { vendor: `\n    ${a}` },
      /7:\d+ .*credentials: lists all credentials; remove api_key/,
    ],
    [
      "credentials whose weights sum to 0",
      { credentials: `[{ ${a}, weight: 0 }, { api_key: "\${env:B}", weight: 0 }]` },
      /6:\d+ .*the weights of priority 0 sum to 0/,
    ],
    [
      "routes whose weights sum to 0",
      { routes: "[{ vendor: a, model: x, priority: 1, weight: 0 }, { vendor: b, model: x }]" },
      /9:\d+ .*the weights of priority 1 sum to 0/,
    ],
    [
      "a negative weight",
      { routes: "[{ vendor: a, model: x, weight: -1 }]" },
      /9:\d+ .*must be a whole number from 0/,
    ],
    [
      "a limit of 0",
      { credentials: `[{ ${a}, limits: { rpm: 0 } }]` },
      /6:\d+ .*must be a whole number from 1 to 2147483647/,
    ],
    [
      "a limit above 2^31 - 1",
      { credentials: `[{ ${a}, limits: { tpm: 2147483648 } }]` },
      /6:\d+ .*must be a whole number from 1 to 2147483647/,
    ],
    ["no attempt", { model: ", retry: { attempts: 0 }" }, /9:\d+ .*from 1 to 10/],
    ["a fallback to itself", { model: ", fallback_models: [m]" }, /9:\d+ .*cannot replace itself/],
    [
      "an unknown fallback",
      { model: ", fallback_models: [othr]" },
      /9:\d+ .*no model "othr", did you mean "other"\?/,
    ],
    [
      "a fallback of another type",
      { model: ", fallback_models: [picture]" },
      /9:\d+ .*"picture" is of type IMAGE/,
    ],
    [
      "a fallback twice",
      { model: ", fallback_models: [other, other]" },
      /9:\d+ .*other is listed twice/,
    ],
  ])("refuse %s at its line, without repeating a secret", (_case, parts, expected) => {
    const found = problems(file(parts));
    expect(found.join("\n")).toMatch(expected);
    expect(found.join("\n")).not.toMatch(/sk-(aaa|bbb)/);
  });
});
