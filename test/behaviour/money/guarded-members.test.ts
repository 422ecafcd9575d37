/**
 * Members that decide what a vendor bills: vendors' parsers may ignore case, or take the first of
 * two (R-TXT-10).
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { useGateway } from "../harness.ts";

const running: { vendor?: PlainVendor } = {};
const reply = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hi" } }],
  usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
};
beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: JSON.stringify(reply) }));
});
afterAll(() => running.vendor?.close());

const fixture = useGateway(() => {
  const origin = running.vendor?.url ?? "";
  const apiKey = "sk-guarded";
  const model = (vendor: string) => ({ routes: [{ vendor, model: "vendor-model" }] });
  return {
    vendors: {
      anthropic: { baseUrl: origin, apiKey, kind: "anthropic" },
      openai: { baseUrl: `${origin}/v1`, apiKey, kind: "openai", dialects: ["responses"] },
      compatible: { baseUrl: `${origin}/v1`, apiKey, kind: "openai-compatible" },
    },
    models: {
      messages: model("anthropic"),
      responses: model("openai"),
      chat: model("compatible"),
    },
  };
});

const messages = [{ role: "user", content: "Hi" }];
const messagesSearch = { type: "web_search_20250305", name: "web_search" };
const hidden = { type: "web_search" };
it.each([
  ["Tools", "/v1/responses", `"input":"x","Tools":[${JSON.stringify(hidden)}]`],
  ["tools", "/v1/responses", `"input":"x","tools":[${JSON.stringify(hidden)}],"tools":[]`],
  ["tools[0].tYpe", "/v1/chat/completions", `"tools":[{"tYpe":"web_search"}]`],
  ["tools[0].TYPE", "/v1/chat/completions", `"tools":[{"type":"function","TYPE":"web_search"}]`],
  [
    "tools[0].type",
    "/v1/chat/completions",
    `"tools":[{"type":"web_search","type":"function","function":{"name":"f"}}]`,
  ],
  ["Web_Search_Options", "/v1/chat/completions", `"Web_Search_Options":{}`],
  [
    "web_search_options",
    "/v1/chat/completions",
    `"web_search_options":{},"web_search_options":null`,
  ],
  [
    "tools",
    "/v1/messages",
    `"max_tokens":9,"tools":[${JSON.stringify(messagesSearch)}],"tools":[]`,
  ],
])(
  "a guarded member in other case, or sent twice, is refused by name: %s at %s",
  async (param, path, members) => {
    const model = { "/v1/responses": "responses", "/v1/messages": "messages" }[path] ?? "chat";
    const asked = running.vendor?.requests.length;
    const content = path === "/v1/responses" ? "" : `"messages":${JSON.stringify(messages)},`;
    const response = await fetch(`${fixture.gateway.url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${fixture.customer.key}`,
        "content-type": "application/json",
      },
      body: `{"model":"${model}",${content}${members}}`,
    });
    const told = (await response.text()).replaceAll('\\"', '"');
    expect([response.status, told]).toEqual([400, expect.stringContaining(`"${param}"`)]);
    expect(running.vendor?.requests.length).toBe(asked);
  },
);

it("a schema may name its properties like guarded members, in any case", async () => {
  const properties = { Type: { type: "string" }, Tools: { type: "string" }, TTL: {} };
  const parameters = { type: "object", properties };
  const tools = [{ type: "function", function: { name: "f", parameters } }];
  const response = await fixture.chat({ model: "chat", messages, tools });
  expect(response.status).toBe(200);
  expect(JSON.parse(running.vendor?.requests.at(-1)?.body ?? "")).toMatchObject({ tools });
});
