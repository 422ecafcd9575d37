import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  MediaType,
  ReasoningSealSchema,
  Role,
  ToolType,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  GenerationSchema,
  ReasoningMode,
  ResponseFormatType,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { encode } from "./support.ts";

const text = (value: string) => ({ kind: { case: "text" as const, value: { text: value } } });

describe("a request of another style is written for a responses vendor", () => {
  const chat = (init: Parameters<typeof create<typeof GenerationSchema>>[1]) =>
    encode(create(GenerationSchema, init), Dialect.CHAT_COMPLETIONS);
  const messages = (init: Parameters<typeof create<typeof GenerationSchema>>[1]) =>
    encode(create(GenerationSchema, init), Dialect.MESSAGES);

  it("a request for a responses vendor keeps nothing there, has tools that are not strict, and the least output limit", () => {
    const { body } = chat({
      maxOutputTokens: 1,
      conversation: { tools: [{ kind: { case: "function", value: { name: "f" } } }] },
    });
    expect(body).toMatchObject({
      store: false,
      max_output_tokens: 16,
      tools: [{ name: "f", strict: false, parameters: { type: "object", properties: {} } }],
    });
  });

  it("system text comes first as instructions where its style has one place for it, else as it stands", () => {
    const system = (roleWord: string) => ({
      role: Role.SYSTEM,
      roleWord,
      parts: [text("a"), text("b")],
    });
    expect(messages({ conversation: { turns: [system("")] } }).body).toMatchObject({
      instructions: "a\n\nb",
      input: [],
    });
    expect(chat({ conversation: { turns: [system("developer")] } }).body).toMatchObject({
      input: [{ role: "developer", content: [{ type: "input_text" }, {}] }],
    });
  });

  it("text, calls and results become separate items, ids kept or hashed alike", () => {
    const long = "x".repeat(80);
    const { body } = chat({
      conversation: {
        turns: [
          {
            role: Role.ASSISTANT,
            parts: [
              text("I call"),
              {
                kind: { case: "toolCall", value: { id: long, name: "f", type: ToolType.FUNCTION } },
              },
              {
                kind: {
                  case: "toolCall",
                  value: { id: "c", name: "p", type: ToolType.CUSTOM, input: "x" },
                },
              },
            ],
          },
          {
            role: Role.USER,
            parts: [
              {
                kind: {
                  case: "toolResult",
                  value: { toolCallId: long, isError: true, parts: [text("bad")] },
                },
              },
              {
                kind: {
                  case: "toolResult",
                  value: { toolCallId: "c", parts: [text("a"), text("b")] },
                },
              },
            ],
          },
        ],
      },
    });
    const input = body["input"] as Array<Record<string, unknown>>;
    expect(input).toMatchObject([
      { role: "assistant", content: [{ type: "output_text", text: "I call", annotations: [] }] },
      { type: "function_call", arguments: "{}" },
      { type: "custom_tool_call", call_id: "c", input: "x" },
      { type: "function_call_output", output: "Error: bad" },
      { type: "custom_tool_call_output", call_id: "c", output: "a\nb" },
    ]);
    expect(input[1]?.["call_id"]).toBe(input[3]?.["call_id"]);
    expect(String(input[1]?.["call_id"]).length).toBeLessThanOrEqual(64);
  });

  it("pictures in results become parts", () => {
    const picture = {
      kind: {
        case: "media" as const,
        value: { type: MediaType.IMAGE, source: { case: "base64" as const, value: "iVBORw0" } },
      },
    };
    const { body } = messages({
      conversation: {
        turns: [
          {
            role: Role.USER,
            parts: [
              {
                kind: {
                  case: "toolResult",
                  value: { toolCallId: "c", parts: [text("see"), picture] },
                },
              },
            ],
          },
        ],
      },
    });
    expect(body["input"]).toMatchObject([
      {
        output: [
          { type: "input_text", text: "see" },
          { type: "input_image", image_url: "data:image/png;base64,iVBORw0" },
        ],
      },
    ]);
  });

  it("the vendor's own reasoning goes back as it was, and no other's (R-TXT-3)", () => {
    const sealed = (dialect: Dialect, data: string) => ({
      kind: {
        case: "reasoning" as const,
        value: {
          itemId: "rs_1",
          summaries: ["s"],
          seal: create(ReasoningSealSchema, { dialect, data }),
        },
      },
    });
    const parts = [sealed(Dialect.RESPONSES, "gAAA"), sealed(Dialect.MESSAGES, "secret")];
    const turns = [
      { role: Role.ASSISTANT, parts },
      { role: Role.USER, parts: [text("go on")] },
    ];
    const { body, dropped } = messages({ conversation: { turns } });
    expect(body["input"]).toMatchObject([
      { type: "reasoning", id: "rs_1", summary: [{ text: "s" }], encrypted_content: "gAAA" },
      { role: "user" },
    ]);
    expect(JSON.stringify(body)).not.toContain("secret");
    expect(dropped).toEqual(["turns.reasoning"]);
  });

  const efforts: Array<[string, object, unknown]> = [
    ["an effort", { effort: "low" }, { effort: "low" }],
    ["none", { mode: ReasoningMode.DISABLED }, { effort: "none" }],
    [
      "as the model sees fit",
      { mode: ReasoningMode.ADAPTIVE },
      { effort: "medium", summary: "auto" },
    ],
    [
      "a small budget",
      { mode: ReasoningMode.BUDGET, budgetTokens: 1024 },
      { effort: "low", summary: "auto" },
    ],
    [
      "a large budget",
      { mode: ReasoningMode.BUDGET, budgetTokens: 32_000, summary: "omitted" },
      { effort: "high" },
    ],
  ];
  for (const [name, reasoning, written] of efforts) {
    it(`reasoning is requested by ${name}, sealed where it may arrive`, () => {
      const { body } = messages({ reasoning });
      expect(body["reasoning"]).toEqual(written);
      const isOff = (written as { effort: string }).effort === "none";
      expect(body["include"]).toEqual(isOff ? undefined : ["reasoning.encrypted_content"]);
    });
  }

  it("the strictness of messages is kept where the schema allows it", () => {
    const closed = {
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"],
      additionalProperties: false,
    };
    const formatOf = (schema: object) =>
      messages({
        responseFormat: {
          type: ResponseFormatType.JSON_SCHEMA,
          schemaJson: JSON.stringify(schema),
        },
      });
    expect(formatOf(closed).body).toMatchObject({
      text: { format: { strict: true, name: "reply" } },
    });
    const open = formatOf({ ...closed, required: [] });
    expect(open.body).toMatchObject({ text: { format: { strict: false } } });
    expect(open.dropped).toEqual(["response_format.strict"]);
  });

  it("what a request cannot carry is named, each once (R-TXT-2)", () => {
    const cached = { ...text("a"), cacheHint: { ttl: "5m" } };
    const { dropped } = messages({
      topK: 5,
      seed: 1n,
      presencePenalty: 1,
      frequencyPenalty: 1,
      extras: [{ name: "safeguards", json: "{}" }],
      conversation: { turns: [{ role: Role.USER, name: "bob", parts: [cached, cached] }] },
    });
    expect(dropped.toSorted()).toEqual([
      "cache_hint",
      "frequency_penalty",
      "presence_penalty",
      "safeguards",
      "seed",
      "top_k",
      "turns.name",
    ]);
  });

  const extra = (name: string, json: string) => ({ extras: [{ name, json }] });
  it("the metadata of chat completions is kept", () => {
    expect(chat(extra("metadata", '{"a":"b"}')).body).toMatchObject({ metadata: { a: "b" } });
    expect(chat(extra("n", "1")).dropped).toEqual([]);
  });

  const opaque = (type: string, json = "{}") => ({ dialect: Dialect.MESSAGES, type, json });
  const inTurn = (kind: object) => ({
    conversation: {
      turns: [
        { role: Role.USER, parts: [{ kind }] },
        { role: Role.USER, parts: [] },
      ],
    },
  });
  const refused: Array<[string, object]> = [
    ["two choices", extra("n", "2")],
    ["speech", extra("modalities", '["text","audio"]')],
    [
      "a built-in tool of another style",
      { conversation: { tools: [{ kind: { case: "opaque", value: opaque("bash_20250124") } }] } },
    ],
    [
      "domains a search must leave out",
      {
        conversation: {
          tools: [
            {
              kind: {
                case: "opaque",
                value: opaque("web_search_20250305", '{"blocked_domains":["a"]}'),
              },
            },
          ],
        },
      },
    ],
    ["another style's part", inTurn({ case: "opaque", value: opaque("hologram") })],
    [
      "another vendor's file",
      inTurn({
        case: "media",
        value: { type: MediaType.DOCUMENT, source: { case: "fileId", value: "file_1" } },
      }),
    ],
    [
      "a message to go on with",
      { conversation: { turns: [{ role: Role.ASSISTANT, parts: [text("{")] }] } },
    ],
  ];
  for (const [name, init] of refused) {
    it(`a request with ${name} is refused: leaving it out would change the request`, () => {
      expect(() => messages(init)).toThrow(expect.objectContaining({ status: 400 }));
    });
  }
});
