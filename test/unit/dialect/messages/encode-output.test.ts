import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  MediaType,
  Role,
  ToolChoiceMode,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { ReasoningMode, ResponseFormatType } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { call, encode, f, hi, refusal, result, type TurnInit } from "./encoding.ts";

describe("wire §3: reasoning", () => {
  const high = { effort: "high" };

  it("asks for it by effort", () => {
    expect(encode({ reasoning: high }).sent).toMatchObject({
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
    });
    expect(encode({ reasoning: { effort: "none" } }).sent.thinking).toEqual({ type: "disabled" });
  });

  it("takes no temperature with it", () => {
    const { sent, dropped, version } = encode({ reasoning: high, temperature: 0.2, topK: 3 });
    expect(sent).not.toHaveProperty("temperature");
    expect(dropped).toEqual(["temperature", "top_k"]);
    expect(version).toBe("2026-10-21");
  });

  it("keeps a budget below the most tokens, and gives it up where none fits", () => {
    const reasoning = { mode: ReasoningMode.BUDGET, budgetTokens: 5_000 };
    expect(encode({ reasoning, maxOutputTokens: 2_000 })).toMatchObject({
      sent: { max_tokens: 2_000, thinking: { type: "enabled", budget_tokens: 1_999 } },
      dropped: ["reasoning.budget_tokens"],
    });
    const small = encode({ reasoning, maxOutputTokens: 1_000 });
    expect(small.sent).not.toHaveProperty("thinking");
    expect(small.dropped).toEqual(["reasoning"]);
  });

  it("gives way to a tool that must be called", () => {
    const toolChoice = { mode: ToolChoiceMode.NAMED, tool: { name: "f" } };
    const { sent, dropped } = encode({
      reasoning: high,
      conversation: { tools: [f], toolChoice },
    });
    expect(sent).not.toHaveProperty("thinking");
    expect(sent.tool_choice).toEqual({ type: "tool", name: "f" });
    expect(dropped).toEqual(["reasoning"]);
  });

  it("gives way in the middle of a turn whose reasoning did not come back", () => {
    const turns = [hi, call("a"), result("a", "1")];
    expect(encode({ reasoning: high }, turns).sent).not.toHaveProperty("thinking");
    const seal = { dialect: Dialect.MESSAGES, signature: "s" };
    const thought: TurnInit = {
      role: Role.ASSISTANT,
      parts: [{ kind: { case: "reasoning", value: { text: "hm", seal } } }],
    };
    const { sent } = encode({ reasoning: high }, [hi, thought, call("a"), result("a", "1")]);
    expect(sent.thinking).toEqual({ type: "adaptive" });
    expect(sent.messages[1].content[0]).toEqual({
      type: "thinking",
      thinking: "hm",
      signature: "s",
    });
  });

  it("R-TXT-3: never sends a foreign seal", () => {
    const seal = { dialect: Dialect.RESPONSES, data: "secret" };
    const thought: TurnInit = {
      role: Role.ASSISTANT,
      parts: [{ kind: { case: "reasoning", value: { summaries: ["hm"], seal } } }],
    };
    const { text, dropped } = encode({}, [hi, thought, hi]);
    expect(text).not.toContain("secret");
    expect(dropped).toEqual(["turns.reasoning"]);
  });
});

describe("wire §3: the form of the reply", () => {
  it("the form of the reply closes the objects of a schema, as the vendor demands", () => {
    const schemaJson = '{"type":"object","properties":{"a":{"type":"object"}}}';
    const responseFormat = { type: ResponseFormatType.JSON_SCHEMA, name: "n", schemaJson };
    expect(encode({ responseFormat }).sent.output_config.format.schema).toEqual({
      type: "object",
      properties: { a: { type: "object", additionalProperties: false } },
      additionalProperties: false,
    });
  });

  it("asks for any JSON in words", () => {
    const responseFormat = { type: ResponseFormatType.JSON_OBJECT };
    expect(encode({ responseFormat }).sent.system).toMatch(/JSON object/);
  });
});

describe("wire §3: media", () => {
  const media = (value: object): TurnInit => ({
    role: Role.USER,
    parts: [{ kind: { case: "media", value } }],
  });

  it.each([
    [
      { type: MediaType.IMAGE, source: { case: "base64", value: "iVBORw0KGgoA" } },
      { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgoA" } },
    ],
    [
      { type: MediaType.DOCUMENT, mimeType: "text/csv", source: { case: "base64", value: "YSxi" } },
      { type: "document", source: { type: "text", media_type: "text/plain", data: "a,b" } },
    ],
  ])("are sent as the vendor takes them", (value, block) => {
    expect(encode({}, [media(value)]).sent.messages[0].content).toEqual([block]);
  });

  it.each([
    { type: MediaType.AUDIO, source: { case: "base64", value: "AA" } },
    { type: MediaType.IMAGE, source: { case: "fileId", value: "file-1" } },
    {
      type: MediaType.DOCUMENT,
      mimeType: "application/zip",
      source: { case: "base64", value: "" },
    },
  ])("are refused where they cannot cross", (value) => {
    expect(refusal({}, [media(value)]).status).toBe(400);
  });
});
