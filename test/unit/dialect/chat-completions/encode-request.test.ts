import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  MediaType,
  ToolChoiceMode,
  ToolSchema,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { ReasoningMode, ResponseFormatType } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { encode, refusal } from "./support.ts";
import {
  type Init,
  type PartInit,
  picture,
  user,
  model,
  system,
  generation,
  write,
  converse,
} from "./turns.ts";

describe("R-TXT-2: tools of other styles", () => {
  const functionTool = (
    name: string,
    init: object = {},
    others: MessageInitShape<typeof ToolSchema> = {},
  ) =>
    create(ToolSchema, {
      ...(others as object),
      kind: { case: "function", value: { name, ...init } },
    });

  it("get a schema, a legal name and no hints", () => {
    const { body, dropped } = converse({
      tools: [
        functionTool("a"),
        functionTool(
          "a".repeat(70),
          { strict: true, parametersJson: '{"x":1}' },
          { cacheHint: {} },
        ),
        functionTool("run", {}, { namespace: "ns" }),
      ],
    });
    expect(body.tools).toMatchObject([
      { type: "function", function: { name: "a", parameters: { type: "object", properties: {} } } },
      {
        function: {
          name: expect.stringMatching(/^a{55}_[0-9a-f]{8}$/),
          strict: true,
          parameters: { x: 1 },
        },
      },
      { function: { name: "ns__run" } },
    ]);
    expect(dropped).toEqual(["cache_hint"]);
  });

  it("that are not allowed are left out", () => {
    const { body } = converse({
      tools: [functionTool("a"), functionTool("b")],
      toolChoice: { mode: ToolChoiceMode.REQUIRED, allowed: [{ name: "b" }] },
      parallelToolCalls: false,
    });
    expect(body).toMatchObject({ tool_choice: "required", parallel_tool_calls: false });
    expect(body.tools).toHaveLength(1);
  });

  it("tools of other styles are named in the choice as they are in the list", () => {
    const name = "a.b";
    const { body } = converse({
      tools: [functionTool(name)],
      toolChoice: { mode: ToolChoiceMode.NAMED, tool: { name } },
    });
    expect(body.tool_choice.function.name).toBe(body.tools[0].function.name);
  });

  it("tools of other styles are not chosen from where there are none", () => {
    const { body } = converse({
      toolChoice: { mode: ToolChoiceMode.AUTO },
      parallelToolCalls: true,
    });
    expect(Object.keys(body)).toEqual(["model", "messages"]);
  });
});

describe("R-TXT-2: parameters", () => {
  it.each<[string, Init["reasoning"] & object, string | undefined]>([
    ["1024 tokens", { mode: ReasoningMode.BUDGET, budgetTokens: 1024 }, "low"],
    ["8192 tokens", { mode: ReasoningMode.BUDGET, budgetTokens: 8192 }, "medium"],
    ["8193 tokens", { mode: ReasoningMode.BUDGET, budgetTokens: 8193 }, "high"],
    ["adaptive", { mode: ReasoningMode.ADAPTIVE }, "medium"],
    ["adaptive with an effort", { mode: ReasoningMode.ADAPTIVE, effort: "max" }, "max"],
    ["an effort", { effort: "low" }, "low"],
    ["disabled", { mode: ReasoningMode.DISABLED }, undefined],
    ["nothing", {}, undefined],
  ])("reasoning of %s is asked for by effort", (_, reasoning, effort) => {
    const { body, dropped } = write({ reasoning });
    expect(body.reasoning_effort).toBe(effort);
    const isLost = reasoning.mode === ReasoningMode.DISABLED;
    expect(dropped).toEqual(isLost ? ["reasoning.mode"] : []);
  });

  it("parameters are written under their names; usage of a stream is always asked for", () => {
    const { body, dropped } = write(
      {
        maxOutputTokens: 5,
        stop: ["a"],
        topK: 3,
        seed: 2n ** 62n,
        endUser: "u",
        responseFormat: { type: ResponseFormatType.JSON_SCHEMA, schemaJson: '{"a":1}' },
        extras: [{ name: "container", json: "1" }],
      },
      true,
    );
    expect(body).toMatchObject({
      model: "vendor-model",
      max_completion_tokens: 5,
      stop: ["a"],
      user: "u",
      stream: true,
      stream_options: { include_usage: true },
      response_format: { type: "json_schema", json_schema: { name: "reply", schema: { a: 1 } } },
    });
    // In messages a schema is followed exactly unasked.
    expect(body.response_format.json_schema).toHaveProperty("strict", true);
    expect(dropped).toEqual(["top_k", "container"]);
  });

  it("parameters are never written over by a client's own member with a dot in its name", () => {
    const extras = [{ name: "stream_options.include_usage", json: "false" }];
    const { body } = encode(generation({ extras }), Dialect.CHAT_COMPLETIONS, true);
    expect(body.stream_options.include_usage).toBe(true);
  });
});

describe("R-TXT-2: what would change the request is refused by its name", () => {
  const media = (value: object): PartInit => ({ kind: { case: "media", value } });
  const opaque = { dialect: Dialect.MESSAGES, type: "web_search_20260318", json: "{}" };
  const speak = (...parts: PartInit[]): Init => ({ conversation: { turns: [user(...parts)] } });

  it.each<[string, Init, RegExp]>([
    [
      "a document by its address",
      speak(media({ type: MediaType.DOCUMENT, source: { case: "url", value: "https://x.test" } })),
      /base64/,
    ],
    [
      "a file of another vendor",
      speak(media({ type: MediaType.DOCUMENT, source: { case: "fileId", value: "file-1" } })),
      /base64/,
    ],
    [
      "a picture by its id",
      speak(media({ type: MediaType.IMAGE, source: { case: "fileId", value: "file-1" } })),
      /base64/,
    ],
    [
      "a part of another style",
      speak({ kind: { case: "opaque", value: opaque } }),
      /web_search_20260318/,
    ],
    [
      "a tool of another style",
      { conversation: { tools: [{ kind: { case: "opaque", value: opaque } }] } },
      /no tool "web_search_20260318"/,
    ],
    [
      "a choice of another style",
      {
        conversation: {
          tools: [{ kind: { case: "function", value: { name: "f" } } }],
          toolChoice: { opaque },
        },
      },
      /web_search_20260318/,
    ],
    [
      "a picture that the model sent",
      { conversation: { turns: [model(picture)] } },
      /messages of the model/,
    ],
    ["a picture in system text", { conversation: { turns: [system(picture)] } }, /only text/],
  ])(
    "a request with %s, which would change if it was left out, is refused by name",
    (_, init, message) => {
      expect(refusal(() => write(init)).message).toMatch(message);
    },
  );

  it("JSON of a typed caller that is none is refused by name", () => {
    const responseFormat = { type: ResponseFormatType.JSON_SCHEMA, schemaJson: "{" };
    const typed = { model: "m", stream: false, maxOutputTokens: 9, sourceDialect: undefined };
    const refused = refusal(() =>
      chatCompletions.encodeRequest(generation({ responseFormat }), typed),
    );
    expect(refused.message).toBe('"response_format.schema_json" is not valid JSON');
  });
});

describe("R-TXT-1: documents", () => {
  it("that are text become text; others become files", () => {
    const document = (value: object): PartInit => ({
      kind: { case: "media", value: { type: MediaType.DOCUMENT, ...value } },
    });
    const { body, dropped } = converse({
      turns: [
        user(
          document({ source: { case: "text", value: "body" }, title: "T", citations: true }),
          document({
            source: { case: "base64", value: "CCCC" },
            mimeType: "application/pdf",
            context: "about",
          }),
        ),
      ],
    });
    expect(body.messages[0].content).toEqual([
      { type: "text", text: "T\n\nbody" },
      { type: "text", text: "about" },
      {
        type: "file",
        file: { file_data: "data:application/pdf;base64,CCCC", filename: "document.pdf" },
      },
    ]);
    expect(dropped).toEqual(["citations"]);
  });
});
