import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  MediaType,
  Role,
  ToolChoiceMode,
  ToolType,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { ReasoningMode, ResponseFormatType } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { decode, encode, refusal } from "./support.ts";

const messages = [{ role: "user", content: "hi" }];
const turns = (given: unknown[]) =>
  decode({ model: "m", messages: given }).conversation?.turns ?? [];
const parts = (message: unknown) => turns([message])[0]?.parts.map(({ kind }) => kind) ?? [];
const extras = (given: readonly { name: string }[]) => given.map(({ name }) => name);

describe("R-TXT-2: messages are read in full", () => {
  it("a message is read with the word that was used for the system's role", () => {
    const [a, b] = turns([
      { role: "developer", content: "x", name: "n" },
      { role: "system", content: [{ type: "text", text: "y" }] },
    ]);
    expect(a).toMatchObject({ role: Role.SYSTEM, roleWord: "developer", plain: true, name: "n" });
    expect(b).toMatchObject({ role: Role.SYSTEM, roleWord: "system", plain: false });
  });

  it("splits the address of data into type and base64", () => {
    const content = [
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
      { type: "image_url", image_url: { url: "https://x.test/a.png" } },
      { type: "image_url", image_url: "https://x.test/b.png" },
      { type: "image_url", image_url: { url: "data:text/plain,a%20b" } },
      { type: "input_audio", input_audio: { data: "BBBB", format: "mp3" } },
      {
        type: "file",
        file: { file_data: "data:application/pdf;base64,CCCC", filename: "a.pdf" },
      },
      { type: "file", file: { file_id: "file-1" } },
    ];
    expect(parts({ role: "user", content }).map(({ value }) => value)).toMatchObject([
      {
        type: MediaType.IMAGE,
        mimeType: "image/png",
        source: { case: "base64", value: "AAAA" },
        detail: "low",
      },
      { type: MediaType.IMAGE, source: { case: "url", value: "https://x.test/a.png" } },
      { type: MediaType.IMAGE, source: { case: "url", value: "https://x.test/b.png" } },
      { mimeType: "text/plain", source: { case: "base64", value: "YSBi" } },
      { type: MediaType.AUDIO, mimeType: "audio/mpeg" },
      { type: MediaType.DOCUMENT, mimeType: "application/pdf", filename: "a.pdf" },
      { type: MediaType.DOCUMENT, source: { case: "fileId", value: "file-1" } },
    ]);
  });

  it("messages are read with calls of both kinds, and results of tools in the user's turns", () => {
    const given = turns([
      {
        role: "assistant",
        content: null,
        reasoning: "hm",
        tool_calls: [
          { id: "a", type: "function", function: { name: "f", arguments: "{" } },
          { id: "b", type: "custom", custom: { name: "c", input: "x" } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "1", name: "f" },
      { role: "tool", tool_call_id: "b", content: [{ type: "text", text: "2" }] },
    ]);
    expect(given.map(({ role }) => role)).toEqual([Role.ASSISTANT, Role.USER, Role.USER]);
    expect(given.flatMap((turn) => turn.parts.map(({ kind }) => kind.value))).toMatchObject([
      { text: "hm", seal: { dialect: Dialect.CHAT_COMPLETIONS, signature: "reasoning" } },
      { id: "a", name: "f", type: ToolType.FUNCTION, input: "{" },
      { id: "b", name: "c", type: ToolType.CUSTOM, input: "x" },
      { toolCallId: "a", name: "f", plain: true },
      { toolCallId: "b", plain: false },
    ]);
  });

  it("gives the deprecated calls of functions ids by which results find them", () => {
    const given = turns([
      { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
      { role: "function", name: "f", content: "1" },
    ]);
    const [call, result] = given.flatMap((turn) => turn.parts.map(({ kind }) => kind));
    expect(call?.case === "toolCall" && call.value.id).toBe("call_function_0");
    expect(result?.case === "toolResult" && result.value.toolCallId).toBe("call_function_0");
  });

  it("takes what real clients send beside it, and keeps it", () => {
    const [turn] = turns([
      {
        role: "assistant",
        content: [{ type: "text", text: "a", annotations: [], role: "assistant", refusal: null }],
        parsed: { a: 1 },
        audio: null,
        function_call: null,
        tool_calls: null,
      },
    ]);
    expect(extras(turn?.extras ?? [])).toEqual(["parsed"]);
    expect(extras(turn?.parts[0]?.extras ?? [])).toEqual(["annotations", "role"]);
  });
});

describe("R-TXT-2: parameters are read in full", () => {
  it("each parameter is read into its field", () => {
    const generation = decode({
      model: "m",
      messages,
      max_tokens: 5,
      temperature: 0,
      top_p: 1,
      presence_penalty: -2,
      frequency_penalty: 2,
      seed: -1,
      stop: "x",
      reasoning_effort: "none",
      verbosity: "low",
      safety_identifier: "u",
      service_tier: "flex",
      prompt_cache_key: "k",
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      response_format: { type: "json_schema", json_schema: { name: "n", schema: { a: 1 } } },
      logit_bias: { 1: 2 },
      top_k: null,
    });
    expect(generation).toMatchObject({
      model: "m",
      maxOutputTokens: 5,
      temperature: 0,
      topP: 1,
      presencePenalty: -2,
      frequencyPenalty: 2,
      seed: -1n,
      stop: ["x"],
      reasoning: { mode: ReasoningMode.DISABLED, effort: "none" },
      verbosity: "low",
      endUser: "u",
      serviceTier: "flex",
      cacheKey: "k",
      stream: true,
      includeUsage: true,
      responseFormat: {
        type: ResponseFormatType.JSON_SCHEMA,
        name: "n",
        schemaJson: '{"a":1}',
      },
    });
    expect(generation.responseFormat?.strict).toBeUndefined();
    expect(extras(generation.extras)).toEqual(["logit_bias", "stream_options.include_obfuscation"]);
  });

  it("tools, deprecated functions, and the choice among them", () => {
    const { conversation } = decode({
      model: "m",
      messages,
      tools: [{ type: "function", function: { name: "f", strict: false } }],
      functions: [{ name: "g", parameters: {} }],
      function_call: { name: "g" },
      web_search_options: {},
      parallel_tool_calls: false,
    });
    expect(conversation?.tools.map(({ kind }) => kind.value)).toMatchObject([
      { name: "f", strict: false, parametersJson: "" },
      { name: "g", parametersJson: "{}" },
      { type: "web_search_options", dialect: Dialect.CHAT_COMPLETIONS },
    ]);
    expect(conversation?.toolChoice).toMatchObject({
      mode: ToolChoiceMode.NAMED,
      tool: { name: "g" },
    });
    expect(conversation?.parallelToolCalls).toBe(false);
  });

  it("R-TXT-5: modelKey and prompt, where the route has them", () => {
    const generation = decode({ modelKey: "m", prompt: "hi" }, true);
    expect(generation.model).toBe("m");
    expect(encode(generation).body.messages).toEqual([{ role: "user", content: "hi" }]);
    expect(refusal(() => decode({ modelKey: "m", prompt: "hi" })).param).toBe("model");
  });
});

describe("R-ERR-7: what cannot be served is refused by its name", () => {
  const call = { role: "assistant", tool_calls: [{ type: "function", function: { name: "f" } }] };
  it.each<[string, object]>([
    ["n", { n: 129 }],
    ["modalities", { modalities: ["text", "audio"] }],
    ["audio", { audio: { voice: "x", format: "wav" } }],
    ["messages", { messages: [] }],
    ["messages[0].role", { messages: [{ role: "robot", content: "x" }] }],
    ["messages[0].content", { messages: [{ role: "user" }] }],
    ["messages[0].content", { messages: [{ role: "user", content: 7 }] }],
    [
      "messages[0].content[0].text",
      { messages: [{ role: "user", content: [{ type: "text", text: 1 }] }] },
    ],
    [
      "messages[0].content[0].file",
      { messages: [{ role: "user", content: [{ type: "file", file: {} }] }] },
    ],
    ["messages[0].tool_call_id", { messages: [{ role: "tool", content: "x" }] }],
    ["messages[0].tool_calls[0].id", { messages: [call] }],
    ["temperature", { temperature: 3 }],
    ["max_tokens", { max_tokens: 0 }],
    ["stop[1]", { stop: ["a", 1] }],
    ["tool_choice", { tool_choice: "any" }],
    ["tools[0].function", { tools: [{ type: "function" }] }],
    ["response_format.type", { response_format: { type: "xml" } }],
    ["response_format.json_schema", { response_format: { type: "json_schema" } }],
  ])("a request with %s, which cannot be served, is refused by that name", (param, members) => {
    expect(refusal(() => decode({ model: "m", messages, ...members })).param).toBe(param);
  });
});
