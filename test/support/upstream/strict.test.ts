/** Refusals of the strict simulations, in the words of the vendors. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { strictChat } from "./chat-strict.ts";
import { strictGemini } from "./gemini-strict.ts";
import { strictMessages } from "./messages-strict.ts";
import { strictResponses } from "./responses-strict.ts";
import { greeting } from "./scenario.ts";
import { seal, sign } from "./seal.ts";
import type { StrictStyle } from "./strict.ts";
import { startUpstream, type Upstream } from "./upstream.ts";

type Row = readonly [what: string, body: Readonly<Record<string, unknown>>, message: RegExp];

const model = "vendor-model";
const loose = { type: "object", properties: { a: { type: "string" } } };

const chat = { model, messages: [{ role: "user", content: "hi" }] };
const chatCall = {
  role: "assistant",
  tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
};
const chatOf = (...messages: unknown[]) => ({ model, messages: [...chat.messages, ...messages] });

const chatRows: readonly Row[] = [
  ["an unknown member", { ...chat, top_k: 1 }, /Unknown parameter: 'top_k'/],
  [
    "cache_control",
    chatOf({ role: "user", content: [{ type: "text", text: "x", cache_control: {} }] }),
    /Unknown parameter: 'messages\[1\]\.content\[0\]\.cache_control'/,
  ],
  ["five stops", { ...chat, stop: ["a", "b", "c", "d", "e"] }, /maximum length 4/],
  ["an orphan result", chatOf({ role: "tool", tool_call_id: "c1", content: "" }), /preceeding/],
  ["a call without its result", chatOf(chatCall), /must be followed by tool messages/],
  [
    "an image in a result",
    chatOf(chatCall, {
      role: "tool",
      tool_call_id: "c1",
      content: [{ type: "image_url", image_url: { url: "https://x/y.png" } }],
    }),
    /Invalid value: "image_url"\. Supported values are: 'text'/,
  ],
  [
    "a loose schema that is to be strict",
    {
      ...chat,
      response_format: {
        type: "json_schema",
        json_schema: { name: "n", strict: true, schema: loose },
      },
    },
    /additionalProperties/,
  ],
  ["a choice of no tool", { ...chat, tool_choice: "auto" }, /only allowed when 'tools'/],
  ["silence of an assistant", chatOf({ role: "assistant", content: null }), /got null/],
];

const response = { model, input: "hi" };
const itemsOf = (...input: unknown[]) => ({
  model,
  input: [{ role: "user", content: "hi" }, ...input],
});
const functionCall = { type: "function_call", call_id: "c1", name: "f", arguments: "{}" };
const output = { type: "function_call_output", call_id: "c1", output: "x" };

const responsesRows: readonly Row[] = [
  ["an unknown member", { ...response, stop: "x" }, /Unknown parameter: 'stop'/],
  ["few output tokens", { ...response, max_output_tokens: 15 }, /Expected a value >= 16/],
  ["an orphan output", itemsOf(output), /No tool call found for function call output/],
  ["a call without its output", itemsOf(functionCall), /No tool output found for function call c1/],
  [
    "a long call id",
    itemsOf({ ...functionCall, call_id: "c".repeat(65) }),
    /maximum length 64, but got a string with length 65/,
  ],
  ["a foreign item id", itemsOf({ ...functionCall, id: "toolu_1" }, output), /begins with 'fc'/],
  [
    "a nested tool",
    { ...response, tools: [{ type: "function", function: { name: "f" } }] },
    /Missing required parameter: 'tools\[0\]\.name'/,
  ],
  [
    "a loose schema that is to be strict",
    { ...response, tools: [{ type: "function", name: "f", parameters: loose, strict: true }] },
    /additionalProperties/,
  ],
  [
    "reasoning of another vendor",
    itemsOf(
      {
        type: "reasoning",
        id: "rs_1",
        summary: [],
        encrypted_content: seal({ issuer: "messages", id: "rs_1", text: "x" }),
      },
      { role: "assistant", content: "x" },
    ),
    /could not be verified/,
  ],
  [
    "an input part in an assistant's text",
    itemsOf({ role: "assistant", content: [{ type: "input_text", text: "x" }] }),
    /Supported values are: 'output_text', 'refusal'/,
  ],
];

const ask = { role: "user", content: "hi" };
const message = { model, max_tokens: 2_000, messages: [ask] };
const turnsOf = (...messages: unknown[]) => ({ ...message, messages: [ask, ...messages] });
const use = { type: "tool_use", id: "t1", name: "f", input: {} };
const result = { type: "tool_result", tool_use_id: "t1", content: "x" };
const enabled = { thinking: { type: "enabled", budget_tokens: 1_024 } };
const marked = { type: "text", text: "x", cache_control: { type: "ephemeral" } };

const messagesRows: readonly Row[] = [
  ["no limit", { model, messages: [ask] }, /max_tokens: Field required/],
  ["an unknown member", { ...message, stop: ["x"] }, /stop: Extra inputs are not permitted/],
  ["an empty text", turnsOf({ role: "user", content: [{ type: "text", text: "" }] }), /non-empty/],
  [
    "a call without its result",
    turnsOf({ role: "assistant", content: [use] }, ask),
    /immediately after: t1/,
  ],
  ["an orphan result", turnsOf({ role: "user", content: [result] }), /unexpected `tool_use_id`/],
  [
    "system text between two messages of the user",
    turnsOf({ role: "system", content: "s" }, ask),
    /role 'system' must follow/,
  ],
  [
    "system text behind the assistant",
    turnsOf({ role: "assistant", content: "yes" }, { role: "system", content: "s" }, ask),
    /role 'system' must follow/,
  ],
  [
    "an id with a colon",
    turnsOf({ role: "assistant", content: [{ ...use, id: "f:0" }] }, ask),
    /does not match pattern/,
  ],
  [
    "a signature that was changed",
    turnsOf(
      {
        role: "assistant",
        content: [
          {
            type: "thinking",
            thinking: "other",
            signature: sign({ issuer: "messages", id: "", text: "x" }),
          },
          { type: "text", text: "x" },
        ],
      },
      ask,
    ),
    /Invalid `signature` in `thinking` block/,
  ],
  [
    "a loop that lost its thinking",
    {
      ...turnsOf({ role: "assistant", content: [use] }, { role: "user", content: [result] }),
      ...enabled,
    },
    /Expected `thinking` or `redacted_thinking`, but found `tool_use`/,
  ],
  ["five cache marks", turnsOf({ role: "user", content: Array(5).fill(marked) }), /Found 5/],
  [
    "thinking with a forced tool",
    {
      ...message,
      ...enabled,
      tools: [{ name: "f", input_schema: { type: "object" } }],
      tool_choice: { type: "any" },
    },
    /tool_choice forces tool use/,
  ],
  ["a budget over the limit", { ...message, ...enabled, max_tokens: 1_024 }, /must be greater/],
  ["heat while thinking", { ...message, ...enabled, temperature: 0.5 }, /may only be set to 1/],
  [
    "an image of an assistant",
    turnsOf({
      role: "assistant",
      content: [{ type: "image", source: { type: "url", url: "https://x/y.png" } }],
    }),
    /not permitted in assistant messages/,
  ],
];

const contents = [{ role: "user", parts: [{ text: "hi" }] }];
const call = { role: "model", parts: [{ functionCall: { name: "f", args: {} } }] };

const geminiRows: readonly Row[] = [
  ["an unknown member", { contents, model }, /Unknown name "model"/],
  ["a call without its response", { contents: [...contents, call] }, /number of function response/],
  [
    "additionalProperties in a schema",
    {
      contents,
      tools: [
        {
          functionDeclarations: [
            { name: "f", parameters: { type: "object", additionalProperties: false } },
          ],
        },
      ],
    },
    /Unknown name "additionalProperties"/,
  ],
  [
    "a foreign signature",
    { contents: [{ role: "user", parts: [{ text: "x", thoughtSignature: "eHg=" }] }] },
    /Thought signature is not valid/,
  ],
  ["an empty part", { contents: [{ role: "user", parts: [{}] }] }, /must have one initialized/],
];

describe.each<[string, string, () => StrictStyle, readonly Row[]]>([
  ["chat completions", "/v1/chat/completions", strictChat, chatRows],
  ["responses", "/v1/responses", strictResponses, responsesRows],
  ["messages", "/v1/messages", strictMessages, messagesRows],
  ["gemini", "/v1beta/models/vendor-model:generateContent", strictGemini, geminiRows],
])("%s", (name, path, style, rows) => {
  let upstream: Upstream;
  beforeAll(async () => {
    upstream = await startUpstream({ style: style() });
  });
  afterAll(() => upstream.close());

  const send = async (body: unknown, version = "2023-06-01") => {
    const credential = { authorization: `Bearer ${upstream.secret}` };
    const reply = await fetch(`${upstream.origin}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(path.includes("beta") ? { "x-goog-api-key": upstream.secret } : credential),
        ...(path.endsWith("messages") && { "anthropic-version": version }),
      },
      body: JSON.stringify(body),
    });
    return { status: reply.status, body: await reply.text() };
  };

  it.each(rows)("the strict vendor refuses %s", async (_what, body, text) => {
    const reply = await send(body);
    const { error } = JSON.parse(reply.body) as { error: { message: string } };
    expect(error.message).toMatch(text);
    expect(reply.status).toBe(400);
  });

  it("uses the last text of the user's last message, not by context and turns before it", async () => {
    const texts = ["refuse, or be long", "say hello"].map((text) => ({
      ...(path.endsWith("responses")
        ? { type: "input_text" }
        : !path.includes("beta") && { type: "text" }),
      text,
    }));
    const bodies: Readonly<Record<string, unknown>> = {
      "chat completions": { model, messages: [{ role: "user", content: texts }] },
      responses: { model, input: [{ role: "user", content: texts }] },
      messages: { ...message, messages: [{ role: "user", content: texts }] },
      gemini: { contents: [{ role: "user", parts: texts }] },
    };
    expect((await send(bodies[name])).body).toContain(greeting.join(""));
  });

  it("reports a seal that was wrapped for a client of another style", async () => {
    const before = upstream.violations.length;
    await send({ any: "uas1.eyJkIjoxfQ" });
    expect(upstream.violations.slice(before)).toEqual([expect.stringContaining("wrapped seal")]);
  });

  if (path.endsWith("responses")) {
    it("takes what codex adds, and calls with the arguments that the text spells out", async () => {
      const { status, body } = await send({
        model,
        input: [
          {
            role: "user",
            content: 'call shell with {"cmd":"cat word.txt"}',
            internal_chat_message_metadata_passthrough: { turn_id: "t1" },
          },
        ],
        tools: [{ type: "function", name: "shell", parameters: null, strict: false }],
        client_metadata: { session_id: "s1" },
      });
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject({
        output: [{ type: "function_call", name: "shell", arguments: '{"cmd":"cat word.txt"}' }],
      });
    });
  }
  if (!path.endsWith("messages")) return;
  it("refuses sampling settings in the newest version, and unknown versions", async () => {
    const heated = { ...message, temperature: 0.5 };
    expect((await send(heated)).status).toBe(200);
    expect((await send(heated, "2026-10-21")).body).toMatch(/temperature: Extra inputs/);
    expect((await send(message, "2020-01-01")).body).toMatch(/not a valid version/);
  });
});
