/**
 * Vendors that answer in the other form: events although no stream was requested, or a whole reply
 * in place of a stream.
 */
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type RoutingVendor,
  startVendor,
  type VendorAnswer,
} from "../../support/routing-vendor.ts";
import { newRequestId, useGateway } from "../harness.ts";

const vendors: { one?: RoutingVendor } = {};
beforeAll(async () => {
  vendors.one = await startVendor();
});
afterAll(() => vendors.one?.close());
beforeEach(() => {
  if (vendors.one) vendors.one.requests.length = 0;
});

type Style = "chat" | "responses" | "messages";
const styles = ["chat", "responses", "messages"] as const;
const kinds: Readonly<Record<Style, readonly [kind: string, dialect: string]>> = {
  chat: ["openai-compatible", "chat-completions"],
  responses: ["openai", "responses"],
  messages: ["anthropic", "messages"],
};

const fixture = useGateway(() => ({
  vendors: Object.fromEntries(
    styles.map((style) => [
      style,
      {
        kind: kinds[style][0],
        baseUrl: vendors.one?.baseUrl ?? "",
        apiKey: "sk-operators",
        dialects: [kinds[style][1]],
      },
    ]),
  ),
  models: Object.fromEntries(
    styles.map((style) => [`m-${style}`, { routes: [{ vendor: style, model: "vendor-model" }] }]),
  ),
}));

const paths: Readonly<Record<Style, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

function ask(style: Style, vendor: Style, more: object) {
  const id = newRequestId();
  const question =
    style === "responses"
      ? { input: "Hello" }
      : { max_tokens: 50, messages: [{ role: "user", content: "Hello" }] };
  const body = JSON.stringify({ model: `m-${vendor}`, ...question, ...more });
  const reply = fixture.send(paths[style], { body, headers: { "x-request-id": id } });
  return { id, reply };
}

const answers =
  (contentType: string, body: string): VendorAnswer =>
  ({ response }) => {
    response.writeHead(200, { "content-type": contentType }).end(body);
  };
const eventsOf = (...all: ReadonlyArray<Readonly<Record<string, unknown>>>): string =>
  all
    .map((each) => {
      const name = typeof each["type"] === "string" ? `event: ${each["type"]}\n` : "";
      return `${name}data: ${JSON.stringify(each)}\n\n`;
    })
    .join("");

const args = '{"id":2512292042121000001}';
const item = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: args };
const message = {
  type: "message",
  id: "msg_1",
  role: "assistant",
  content: [{ type: "output_text", text: "Hello", annotations: [] }],
};
const chatUsage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
const usage = { input_tokens: 100, output_tokens: 20 };
const fn = { name: "f", arguments: args };

/** A text and a call, with 100 tokens of input and 20 of output. */
const streamed: Readonly<Record<Style, string>> = {
  chat: `${eventsOf(
    { id: "c1", choices: [{ index: 0, delta: { role: "assistant", content: "Hel" } }] },
    { id: "c1", choices: [{ index: 0, delta: { content: "lo" } }] },
    {
      id: "c1",
      choices: [
        {
          index: 0,
          delta: { tool_calls: [{ index: 0, id: "call_1", type: "function", function: fn }] },
        },
      ],
    },
    { id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
    { id: "c1", choices: [], usage: chatUsage },
  )}data: [DONE]\n\n`,
  responses: eventsOf(
    { type: "response.created", response: { id: "resp_v", status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { ...message, content: [] } },
    { type: "response.output_item.done", output_index: 0, item: message },
    { type: "response.output_item.done", output_index: 1, item },
    {
      type: "response.completed",
      response: { id: "resp_v", status: "completed", output: [message, item], usage },
    },
  ),
  messages: eventsOf(
    { type: "message_start", message: { id: "msg_v", usage: { ...usage, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
    { type: "content_block_stop", index: 0 },
    {
      type: "content_block_start",
      index: 1,
      content_block: { type: "tool_use", id: "call_1", name: "f", input: {} },
    },
    {
      type: "content_block_delta",
      index: 1,
      delta: { type: "input_json_delta", partial_json: args },
    },
    { type: "content_block_stop", index: 1 },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 20 } },
    { type: "message_stop" },
  ),
};
const whole: Readonly<Record<Style, string>> = {
  chat: JSON.stringify({
    id: "c1",
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "Hello",
          tool_calls: [{ id: "call_1", type: "function", function: fn }],
        },
        finish_reason: "tool_calls",
      },
    ],
    usage: chatUsage,
  }),
  responses: JSON.stringify({ id: "resp_v", status: "completed", output: [message, item], usage }),
  messages: `{"id":"msg_v","type":"message","role":"assistant","content":[{"type":"text","text":"Hello"},{"type":"tool_use","id":"call_1","name":"f","input":${args}}],"stop_reason":"tool_use","usage":${JSON.stringify(usage)}}`,
};

/** A client's reading of a whole reply in each style. */
const read: Readonly<Record<Style, (text: string) => unknown>> = {
  chat: (text) => {
    const [{ message: said, finish_reason: end }] = JSON.parse(text).choices;
    return [said.content, said.tool_calls[0].function.arguments, end];
  },
  responses: (text) => {
    const { output, status } = JSON.parse(text);
    expect(status).toBe("completed");
    return [output[0].content[0].text, output[1].arguments, "tool_calls"];
  },
  messages: (text) => {
    const { content, stop_reason: end } = JSON.parse(text);
    const written = /"input":\s*(\{[^}]*\})/.exec(text)?.[1];
    return [content[0].text, written, end === "tool_use" ? "tool_calls" : end];
  },
};

const pairs = styles.flatMap((caller) => styles.map((vendor) => [caller, vendor] as const));

describe("events in place of a whole reply", () => {
  it.each(pairs)(
    "become a whole reply, charged by its usage: %s caller, %s vendor",
    async (caller, vendor) => {
      for (const type of ["text/event-stream; charset=utf-8", "application/json"]) {
        if (vendors.one) vendors.one.answer = answers(type, streamed[vendor]);
        const { id, reply } = ask(caller, vendor, { stream: false });
        const { status, headers, body } = await reply;
        expect([status, headers["content-type"]]).toEqual([200, "application/json"]);
        expect(read[caller](body.toString())).toEqual(["Hello", args, "tool_calls"]);
        expect(JSON.parse(body.toString()).model).toBe(`m-${vendor}`);
        const call = await fixture.gateway.call(id);
        expect(call.usage).toMatchObject({ inputTokens: 100, outputTokens: 20 });
        expect(call.cost?.amountNanos).toBeGreaterThan(0n);
      }
    },
  );

  it.each(styles)(
    "are an error and free if they were cut or report a failure: %s",
    async (style) => {
      const end = streamed[style].lastIndexOf("\n\n", streamed[style].length - 30);
      const cut = streamed[style].slice(0, Math.floor(end / 2));
      const failed =
        style === "messages"
          ? eventsOf({ type: "error", error: { type: "api_error", message: "oops" } })
          : eventsOf({ type: "error", error: { code: "server_error", message: "oops" } });
      for (const body of [cut, failed]) {
        if (vendors.one) vendors.one.answer = answers("text/event-stream", body);
        const { id, reply } = ask(style, style, {});
        expect((await reply).status).toBe(502);
        const call = await fixture.gateway.call(id);
        expect(call.cost?.amountNanos ?? 0n).toBe(0n);
      }
    },
  );

  it("are an error and free if several choices were requested", async () => {
    if (vendors.one) vendors.one.answer = answers("text/event-stream", streamed.chat);
    const { id, reply } = ask("chat", "chat", { n: 2 });
    expect((await reply).status).toBe(502);
    expect((await fixture.gateway.call(id)).cost?.amountNanos ?? 0n).toBe(0n);
  });
});

describe("a whole reply in place of a stream", () => {
  it.each(styles.map((vendor) => [vendor]))(
    "becomes a stream that the SDKs read: %s vendor",
    async (vendor) => {
      if (vendors.one) vendors.one.answer = answers("application/json", whole[vendor]);
      const { url } = fixture.gateway;
      const { key } = fixture.customer;
      const { openai } = fixture;
      const anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
      const model = `m-${vendor}`;
      const messages = [{ role: "user" as const, content: "Hello" }];

      const chat = await openai.chat.completions
        .stream({ model, messages, stream_options: { include_usage: true } })
        .finalChatCompletion();
      expect(chat.choices[0]?.message).toMatchObject({
        content: "Hello",
        tool_calls: [{ id: "call_1", function: { name: "f", arguments: args } }],
      });
      expect(chat.usage).toMatchObject({ prompt_tokens: 100, completion_tokens: 20 });

      const response = await openai.responses.stream({ model, input: "Hello" }).finalResponse();
      expect(response.output_text).toBe("Hello");
      expect(response.output.at(-1)).toMatchObject({ call_id: "call_1", arguments: args });

      const said = await anthropic.messages
        .stream({ model, max_tokens: 50, messages })
        .finalMessage();
      expect(said).toMatchObject({ stop_reason: "tool_use", usage });
      expect(said.content).toMatchObject([{ text: "Hello" }, { type: "tool_use", id: "call_1" }]);
    },
  );

  it.each(pairs)("is charged by its usage: %s caller, %s vendor", async (caller, vendor) => {
    if (vendors.one) vendors.one.answer = answers("application/json", whole[vendor]);
    const { id, reply } = ask(caller, vendor, { stream: true });
    const { status, headers, body } = await reply;
    expect([status, headers["content-type"]]).toEqual([200, "text/event-stream; charset=utf-8"]);
    expect(body.toString()).toMatch(/^(?:event|data):/);
    expect((await fixture.gateway.call(id)).usage).toMatchObject({
      inputTokens: 100,
      outputTokens: 20,
    });
  });

  it("is an error and free if several choices were requested", async () => {
    if (vendors.one) vendors.one.answer = answers("application/json", whole.chat);
    const { id, reply } = ask("chat", "chat", { n: 2, stream: true });
    expect((await reply).status).toBe(502);
    expect((await fixture.gateway.call(id)).cost?.amountNanos ?? 0n).toBe(0n);
  });
});

it("a response that was rewritten is continued from the gateway's own copy", async () => {
  if (vendors.one) vendors.one.answer = answers("text/event-stream", streamed.responses);
  const first = await ask("responses", "responses", {}).reply;
  const { id } = JSON.parse(first.body.toString());
  const result = { type: "function_call_output", call_id: "call_1", output: "done" };
  const second = ask("responses", "responses", { previous_response_id: id, input: [result] });
  expect((await second.reply).status).toBe(200);
  const sent = vendors.one?.requests.at(-1)?.body ?? {};
  expect(sent["previous_response_id"]).toBeUndefined();
  expect(JSON.stringify(sent["input"])).toContain("call_1");
});
