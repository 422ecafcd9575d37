import { describe, expect, it } from "vitest";
import { servedKinds } from "../../../src/provider/index.ts";
import { loadText, problemsOf } from "./support.ts";

const kinds = servedKinds;
const env = { K: "k" };

const file = (vendor: string) =>
  `version: 1
vendors:
  v: { ${vendor} }
models:
  m: { type: TEXT, routes: [{ vendor: v, model: x }], max_output_tokens: 9, price: { input: "1", output: "1" } }
`;

function quirksOf(vendor: string) {
  return loadText(file(vendor), { env, kinds }).models.get("m")?.routes[0]?.quirks;
}

const compatible = 'kind: openai-compatible, base_url: "https://a.test/v1"';
const anthropic = 'kind: anthropic, base_url: "https://a.test", api_key: "${env:K}"';

describe("quirks of a vendor", () => {
  it("have the defaults of its kind and its preset", () => {
    expect(quirksOf(compatible)).toEqual({ developerRole: "refused" });
    expect(quirksOf(anthropic)).toBeUndefined();
    expect(quirksOf("preset: vllm")).toEqual({ developerRole: "refused", lateSystem: "as_user" });
    expect(quirksOf('preset: mistral, api_key: "${env:K}"')).toEqual({
      developerRole: "refused",
      callIds: "alphanumeric_9",
      prefill: "refused",
      blankText: "refused",
    });
    expect(
      quirksOf('preset: azure-openai, base_url: "https://a.test", api_key: "${env:K}"'),
    ).toBeUndefined();
  });

  it("are set one by one, over those of the preset", () => {
    const quirks = "quirks: { late_system: at_top, developer_role: accepted }";
    expect(quirksOf(`preset: vllm, ${quirks}`)).toEqual({
      developerRole: "accepted",
      lateSystem: "at_top",
    });
    const all =
      "quirks: { late_system: in_place, call_ids: any, tool_results: any, prefill: refused, blank_text: accepted }";
    expect(quirksOf(`${anthropic}, ${all}`)).toEqual({
      lateSystem: "in_place",
      callIds: "any",
      toolResults: "any",
      prefill: "refused",
      blankText: "accepted",
    });
  });

  it.each([
    [
      `${compatible}, quirks: { late_sytem: at_top }`,
      /^uas.yaml:3:\d+ .*quirks.*unknown key.*late_system/,
    ],
    [
      `${compatible}, quirks: { late_system: on_top }`,
      /quirks\.late_system: "on_top" is not known/,
    ],
    [`${compatible}, quirks: [late_system]`, /quirks: must be a map/],
    [`${anthropic}, quirks: { developer_role: refused }`, /no role developer/],
    ["kind: demo, quirks: { prefill: refused }", /only kinds openai, .* have quirks/],
  ])("{ %s } is an error with its position", (vendor, message) => {
    const problems = problemsOf(file(vendor), { env, kinds });
    expect(problems).toContainEqual(expect.stringMatching(message));
  });
});
