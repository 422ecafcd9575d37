import { describe, expect, it } from "vitest";
import { presets } from "../../../src/config/presets.ts";
import { servedKinds } from "../../../src/provider/index.ts";
import { loadText } from "./support.ts";

/** The warnings about the address of a vendor. */
function warnings(vendor: string): readonly string[] {
  const yaml = `version: 1\nvendors:\n  v: { ${vendor}, api_key: "\${env:K}" }\nmodels: {}\n`;
  const config = loadText(yaml, { env: { K: "k" }, kinds: servedKinds });
  return config.warnings.filter((warning) => !warning.includes("no model can be called"));
}

const at = "uas.yaml:3:";
const https = "write https instead";

describe("an address that requests would miss is a warning with the right one", () => {
  it.each([
    ["openai", "https://api.openai.com", "https://api.openai.com/v1"],
    ["openai", "https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1"],
    ["openai-compatible", "https://api.groq.com/openai", "https://api.groq.com/openai/v1"],
    ["openai-compatible", "https://api.groq.com/openai/v1/v1", "https://api.groq.com/openai/v1"],
    ["anthropic", "https://api.anthropic.com/v1/messages", "https://api.anthropic.com"],
    [
      "gemini",
      "https://generativelanguage.googleapis.com/v1beta/openai",
      "https://generativelanguage.googleapis.com",
    ],
    ["fal", "https://queue.fal.run/v1", "https://queue.fal.run"],
  ])("kind %s at %s", (kind, written, right) => {
    const [warning, ...more] = warnings(`kind: ${kind}, base_url: ${written}`);
    expect([more, warning?.startsWith(at)]).toEqual([[], true]);
    expect(warning).toMatch(
      new RegExp(`base_url: is not the address of this vendor's API: write ${right}$`),
    );
  });

  it.each([
    ["openai-compatible", "https://llm.example.com/v1/chat/completions", "/chat/completions"],
    ["anthropic", "https://proxy.example.com/v1/messages", "/messages"],
    ["gemini", "https://proxy.example.com/models/x:generateContent", "/models/x:generateContent"],
  ])("kind %s at %s: the gateway adds %s itself", (kind, written, added) => {
    const found = warnings(`kind: ${kind}, base_url: "${written}"`);
    expect(found).toEqual([
      expect.stringContaining(`base_url: the gateway adds ${added} itself: remove it`),
    ]);
  });
});

describe("http to a public host", () => {
  it("http to a public host is a warning", () => {
    expect(warnings("kind: openai, base_url: http://api.openai.com/v1")).toEqual([
      expect.stringContaining(https),
    ]);
  });

  it.each([
    "127.0.0.1:8000",
    "10.1.2.3",
    "[::1]:8000",
    "vllm:8000",
    "llm.models.svc",
    "a.internal",
  ])("http to %s is no warning", (host) => {
    expect(warnings(`kind: openai-compatible, base_url: "http://${host}/v1"`)).toEqual([]);
  });
});

describe("documented addresses", () => {
  it.each([...presets].filter(([, { baseUrl }]) => baseUrl !== ""))(
    "the address of preset %s is no warning",
    (_name, { kind, baseUrl }) => {
      expect(warnings(`kind: ${kind}, base_url: ${baseUrl}`)).toEqual([]);
    },
  );

  it.each([
    ["openai-compatible", "https://api.deepseek.com/v1"],
    ["openai-compatible", "https://api.anthropic.com/v1"],
    ["openai-compatible", "https://generativelanguage.googleapis.com/v1beta/openai"],
    ["openai", "https://your-resource.openai.azure.com/openai/v1"],
    ["anthropic", "https://api.deepseek.com/anthropic"],
    ["anthropic", "https://api.anthropic.com/v1/"],
    ["dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"],
  ])("kind %s at %s is no warning", (kind, address) => {
    expect(warnings(`kind: ${kind}, base_url: ${address}`)).toEqual([]);
  });
});
