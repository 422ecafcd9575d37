/**
 * Public suites that know nothing of the gateway, unmodified: CompatCanary (npm `compatcanary`)
 * judges models whose vendors speak every style, and `@copilotkit/aimock` is another upstream than
 * the simulations of this repository.
 */
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { modelOf, useStyleGateway, vendorStyles } from "../../support/style-gateway.ts";
import { openaiOf } from "../harness.ts";

const require = createRequire(import.meta.url);

describe("CompatCanary", () => {
  const fixture = useStyleGateway();

  it.each(vendorStyles)("gives 100 of 100 to a model whose vendor speaks %s", async (style) => {
    const { key } = await fixture.gateway.customer();
    // Its package exports a library only; the program stands beside it.
    const program = join(dirname(require.resolve("compatcanary")), "cli.js");
    const asked = ["--base-url", `${fixture.gateway.url}/v1`, "--model", modelOf(style)];
    const env = { ...process.env, OPENAI_API_KEY: key };
    const args = [program, "scan", ...asked];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    expect(stdout).toContain("Score: 100/100");
  });
});

describe("aimock as the vendor", () => {
  let mock: LLMock;
  let gateway: Gateway;
  let key: string;
  beforeAll(async () => {
    mock = new LLMock({ port: 0, logLevel: "silent" });
    mock.onMessage(/hello/, { content: "Hi there!" });
    const call = { name: "get_weather", arguments: '{"city":"Bern"}' };
    mock.onMessage(/weather/, { toolCalls: [call] });
    await mock.start();
    const apiKey = "sk-mock";
    const bare = { baseUrl: mock.url, apiKey };
    const openai = { baseUrl: `${mock.url}/v1`, apiKey };
    const route = (vendor: string, model: string) => ({ routes: [{ vendor, model }] });
    gateway = await startGateway({
      vendors: {
        chat: { ...openai, kind: "openai-compatible" },
        responses: { ...openai, kind: "openai", dialects: ["responses"] },
        messages: { ...bare, kind: "anthropic" },
        gemini: { ...bare, kind: "gemini" },
      },
      models: {
        chat: route("chat", "gpt-4o"),
        responses: route("responses", "gpt-4o"),
        messages: route("messages", "claude-sonnet-4"),
        gemini: route("gemini", "gemini-2.0-flash"),
      },
    });
    ({ key } = await gateway.customer());
  });
  afterAll(async () => {
    await gateway?.close();
    await mock?.stop();
  });

  const said = [{ role: "user" as const, content: "hello" }];
  const asked = [{ role: "user" as const, content: "weather" }];
  const schema = { type: "object" as const, properties: { city: { type: "string" } } };

  it.each(vendorStyles)("serves OpenAI's SDK through %s", async (model) => {
    const { chat, responses } = openaiOf(gateway, key);
    const whole = await chat.completions.create({ model, messages: said });
    expect(whole.choices[0]?.message.content).toBe("Hi there!");
    const stream = await chat.completions.create({ model, messages: said, stream: true });
    const pieces = (await Array.fromAsync(stream)).map(({ choices }) => choices[0]?.delta.content);
    expect(pieces.join("")).toBe("Hi there!");
    const tool = { name: "get_weather", parameters: schema };
    const called = await chat.completions.create({
      ...{ model, messages: asked, tools: [{ type: "function", function: tool }] },
    });
    expect(called.choices[0]?.message.tool_calls).toMatchObject([
      { function: { name: "get_weather", arguments: '{"city":"Bern"}' } },
    ]);
    expect((await responses.create({ model, input: "hello" })).output_text).toBe("Hi there!");
    const streamed = await responses.create({ model, input: "hello", stream: true });
    const last = (await Array.fromAsync(streamed)).at(-1);
    expect(last).toMatchObject({ type: "response.completed", response: { status: "completed" } });
  });

  it.each(vendorStyles)("serves Anthropic's SDK through %s", async (model) => {
    const anthropic = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 });
    const whole = await anthropic.messages.create({ model, max_tokens: 50, messages: said });
    expect(whole.content).toMatchObject([{ type: "text", text: "Hi there!" }]);
    const tools = [{ name: "get_weather", input_schema: schema }];
    const stream = anthropic.messages.stream({ model, max_tokens: 50, messages: asked, tools });
    expect((await stream.finalMessage()).content).toMatchObject([
      { type: "tool_use", name: "get_weather", input: { city: "Bern" } },
    ]);
  });
});
