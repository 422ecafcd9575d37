import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { Role, ToolChoiceMode } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { call, encode, f, hi, refusal, result, say } from "./encoding.ts";

describe("wire §3: what the vendor must receive", () => {
  it("the vendor gets the caller's max_tokens, else the model's, else 4096", () => {
    expect(encode({ maxOutputTokens: 5 }).sent.max_tokens).toBe(5);
    expect(encode({}).sent.max_tokens).toBe(8_000);
    expect(encode({}, [hi], 0).sent.max_tokens).toBe(4_096);
  });

  it("the older version is sent for sampling parameters only", () => {
    expect(encode({}).version).toBe("2026-10-21");
    expect(encode({ temperature: 0.5 }).version).toBe("2023-06-01");
    expect(encode({ topP: 0.5 }).version).toBe("2023-06-01");
    expect(encode({ topK: 5 }).version).toBe("2023-06-01");
  });
});

describe("R-TXT-2: sampling", () => {
  it("cuts a temperature above 1, and reports it", () => {
    expect(encode({ temperature: 1.5 })).toMatchObject({
      sent: { temperature: 1 },
      dropped: ["temperature"],
    });
    expect(encode({ temperature: 0.7 })).toMatchObject({
      sent: { temperature: 0.7 },
      dropped: [],
    });
  });

  it("drops top_p next to a temperature, and reports it unless it is 1", () => {
    expect(encode({ temperature: 0.7, topP: 0.5 }).dropped).toEqual(["top_p"]);
    expect(encode({ temperature: 0.7, topP: 1 }).dropped).toEqual([]);
  });

  it("names what the style has no member for", () => {
    const init = { seed: 1n, presencePenalty: 1, frequencyPenalty: 1, cacheKey: "k" };
    const extras = [{ name: "logit_bias", json: "{}" }];
    expect(encode({ ...init, verbosity: "low", extras, stop: [" ", "x"] })).toMatchObject({
      sent: { stop_sequences: ["x"] },
      dropped: expect.arrayContaining([
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "cache_key",
        "verbosity",
        "logit_bias",
      ]),
    });
  });

  it.each([
    ["n", "2"],
    ["modalities", '["text","audio"]'],
    ["web_search_options", "{}"],
  ])("refuses %s, whose loss would change the request", (name, json) => {
    expect(refusal({ extras: [{ name, json }] })).toMatchObject({ status: 400, param: name });
  });
});

describe("wire §3: the order of messages", () => {
  it("hoists system texts of the beginning, and makes later ones the user's text", () => {
    const turns = [
      say(Role.SYSTEM, "a"),
      say(Role.SYSTEM, "b"),
      hi,
      say(Role.ASSISTANT, "yes"),
      say(Role.SYSTEM, "c"),
      hi,
    ];
    expect(encode({}, turns).sent).toMatchObject({
      system: [{ text: "a" }, { text: "b" }],
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content: "yes" },
        { role: "user", content: [{ text: "c" }, { text: "hi" }] },
      ],
    });
  });

  it("puts all results of a turn into the next message, first, with no system text between", () => {
    const turns = [hi, call("a"), call("b"), result("a", "1"), say(Role.SYSTEM, "s"), hi];
    const { messages } = encode({}, [...turns, result("b", "2")]).sent;
    expect(messages.map(({ role }: { role: string }) => role)).toEqual([
      "user",
      "assistant",
      "user",
    ]);
    expect(messages[2].content).toMatchObject([
      { type: "tool_result", tool_use_id: "a", content: "1" },
      { type: "tool_result", tool_use_id: "b", content: "2" },
      { type: "text", text: "s" },
      { type: "text", text: "hi" },
    ]);
  });

  it("leaves empty texts and empty messages out", () => {
    const { messages } = encode({}, [hi, say(Role.ASSISTANT, ""), say(Role.USER, "go")]).sent;
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "hi" },
          { type: "text", text: "go" },
        ],
      },
    ]);
    expect(refusal({}, [say(Role.USER, "")]).status).toBe(400);
  });

  it("gives a call and its result the same legal id", () => {
    const { messages } = encode({}, [hi, call("functions.f:0"), result("functions.f:0", "1")]).sent;
    const [{ id }] = messages[1].content;
    expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(messages[2].content[0].tool_use_id).toBe(id);
  });
});

describe("wire §3: tools", () => {
  it("keeps arguments and schemas as they are spelled", () => {
    const parametersJson = '{"type":"object", "properties":{"x":{"const":12345678901234567890}}}';
    const tools = [{ kind: { case: "function" as const, value: { name: "f", parametersJson } } }];
    const { text } = encode({ conversation: { tools } }, [hi, call("a", '{"x": 1.50}')]);
    expect(text).toContain(parametersJson);
    expect(text).toContain('"input":{"x": 1.50}');
  });

  it("makes every schema that of an object", () => {
    expect(encode({ conversation: { tools: [f] } }).sent.tools).toEqual([
      { name: "f", input_schema: { type: "object", properties: {} } },
    ]);
  });

  it("sends {} where the model's arguments are broken", () => {
    const { messages } = encode({}, [hi, call("a", '{"x":')]).sent;
    expect(messages[1].content[0].input).toEqual({});
  });

  it("sends those that are allowed only, and makes a choice to forbid parallel calls in", () => {
    const g = { kind: { case: "custom" as const, value: { name: "g" } } };
    const toolChoice = { mode: ToolChoiceMode.AUTO, allowed: [{ name: "g" }] };
    const { sent } = encode({
      conversation: { tools: [f, g], toolChoice, parallelToolCalls: false },
    });
    expect(sent.tools).toMatchObject([{ name: "g", input_schema: { required: ["input"] } }]);
    expect(sent.tool_choice).toEqual({ type: "auto", disable_parallel_tool_use: true });
    const bare = encode({ conversation: { tools: [f], parallelToolCalls: false } });
    expect(bare.sent.tool_choice).toEqual({ type: "auto", disable_parallel_tool_use: true });
  });

  it("refuses another vendor's own tools, by their type", () => {
    const value = { dialect: Dialect.RESPONSES, type: "file_search", json: "{}" };
    const tools = [{ kind: { case: "opaque" as const, value } }];
    expect(refusal({ conversation: { tools } }).message).toContain("file_search");
  });
});
