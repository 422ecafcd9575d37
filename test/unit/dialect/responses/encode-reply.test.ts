import { createOpenAI } from "@ai-sdk/openai";
import { create } from "@bufbuild/protobuf";
import { generateText } from "ai";
import * as fc from "fast-check";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type Part,
  PartSchema,
  ReasoningSchema,
  ToolType,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type Reply,
  ReplySchema,
  StopReason,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { replyEvents } from "../../../../src/dialect/reply-events.ts";
import { decodeResponsesReply } from "../../../../src/dialect/responses/decode-reply.ts";
import { encodeResponsesReply } from "../../../../src/dialect/responses/encode-reply.ts";
import { assembled, decodeStream } from "./assembled.ts";
import { decode, eventsOf, messagesSeal, replyOptions, serve, streamOf } from "./support.ts";

const options = (onDropped?: (name: string) => void) =>
  replyOptions(decode({ model: "m", input: "hi" }), onDropped);

const words = fc.string({ minLength: 1, maxLength: 12 });
const callPart = fc
  .record({ name: words, type: fc.constantFrom(ToolType.FUNCTION, ToolType.CUSTOM), input: words })
  .map((value) => create(PartSchema, { kind: { case: "toolCall", value } }));
const textPart = fc.record({ text: words, cites: fc.nat(2) }).map(({ text, cites }) => {
  const one = { dialect: Dialect.RESPONSES, json: '{"type":"file_path","file_id":"x"}' };
  const citations = Array.from({ length: cites }, () => one);
  return create(PartSchema, { kind: { case: "text", value: { text, citations } } });
});
const refusalPart = words.map((text) =>
  create(PartSchema, { kind: { case: "refusal", value: { text } } }),
);
const reasoningPart = fc
  .record({
    text: fc.string({ maxLength: 5 }),
    summaries: fc.array(words, { maxLength: 2 }),
    sealed: fc.boolean(),
  })
  .map(({ text, summaries, sealed }) => {
    const value = create(ReasoningSchema, {
      text,
      summaries,
      ...(sealed && { seal: { dialect: Dialect.RESPONSES, data: "gAAAA" } }),
    });
    return create(PartSchema, { kind: { case: "reasoning", value } });
  });
const opaquePart = words.map((id) => {
  const json = JSON.stringify({ type: "web_search_call", id: `ws_${id}`, status: "completed" });
  const value = { dialect: Dialect.RESPONSES, type: "web_search_call", json };
  return create(PartSchema, { kind: { case: "opaque", value } });
});

/** Replies that the style can represent completely. IDs are unique by position. */
const anyReply = fc
  .array(fc.oneof(textPart, callPart, refusalPart, reasoningPart, opaquePart), { maxLength: 6 })
  .map((parts): Reply => {
    parts.forEach(({ kind }, i) => {
      if (kind.case === "toolCall") {
        kind.value.id = `call_${i}`;
        kind.value.itemId = `${kind.value.type === ToolType.CUSTOM ? "ctc" : "fc"}_${i}`;
      }
      if (kind.case === "reasoning") kind.value.itemId = `rs_${i}`;
    });
    const says = (name: Part["kind"]["case"]) => parts.some(({ kind }) => kind.case === name);
    const stopReason = says("toolCall")
      ? StopReason.TOOL_CALLS
      : says("refusal")
        ? StopReason.REFUSAL
        : StopReason.END;
    return create(ReplySchema, {
      id: "resp_0123456789abcdef0123456789abcdef",
      model: "public-model",
      parts,
      stopReason,
      serviceTier: "default",
      created: 5n,
      usage: {
        ...{ inputTokens: 9, cachedInputTokens: 2, outputTokens: 3, reasoningTokens: 1 },
        serviceTier: "default",
      },
    });
  });

describe("a reply crosses the responses style unchanged", () => {
  it("a whole reply crosses the responses style unchanged", () => {
    fc.assert(
      fc.property(anyReply, (reply) => {
        expect(decodeResponsesReply(encodeResponsesReply(reply, options()))).toEqual(reply);
      }),
      { numRuns: 300, seed: 7 },
    );
  });

  it("a streamed reply crosses the responses style in pieces of any size, and as the same response", () => {
    fc.assert(
      fc.property(anyReply, fc.integer({ min: 1, max: 200 }), (reply, pieceBytes) => {
        const stream = streamOf(replyEvents(structuredClone(reply)), options());
        expect(assembled(decodeStream(stream, pieceBytes))).toEqual(reply);
        const last = eventsOf(stream).at(-1)?.["response"];
        expect(last).toEqual(JSON.parse(encodeResponsesReply(reply, options()).toString()));
      }),
      { numRuns: 300, seed: 7 },
    );
  });
});

describe("a whole reply is read by clients", () => {
  const reply = create(ReplySchema, {
    parts: [
      { kind: { case: "reasoning", value: { text: "hm", seal: messagesSeal("s") } } },
      { kind: { case: "text", value: { text: "hello" } } },
      { kind: { case: "toolCall", value: { id: "toolu_1", name: "f", type: ToolType.FUNCTION } } },
      { kind: { case: "opaque", value: { dialect: Dialect.MESSAGES, type: "server_tool_use" } } },
    ],
    stopReason: StopReason.TOOL_CALLS,
    usage: { inputTokens: 3, outputTokens: 4 },
  });

  it("openai 7 and @ai-sdk/openai read a whole reply", async () => {
    const body = encodeResponsesReply(reply, options()).toString();
    await using server = await serve(body, "application/json");
    const client = new OpenAI({ apiKey: "k", baseURL: server.url, maxRetries: 0 });
    const response = await client.responses.create({ model: "m", input: "hi" });
    expect(response.output_text).toBe("hello");
    const provider = createOpenAI({ apiKey: "k", baseURL: server.url });
    const result = await generateText({
      model: provider.responses("m"),
      prompt: "hi",
      maxRetries: 0,
    });
    expect(result).toMatchObject({ text: "hello", reasoningText: "hm" });
    expect(result.toolCalls).toMatchObject([{ toolCallId: "toolu_1", toolName: "f" }]);
  });

  it("a function without arguments has an empty object in a whole reply, as streams have it", () => {
    const { output } = JSON.parse(encodeResponsesReply(reply, options()).toString());
    expect(output[2]).toMatchObject({ type: "function_call", arguments: "{}" });
  });

  it("members that a whole reply cannot carry are named (R-TXT-2)", () => {
    const dropped: string[] = [];
    encodeResponsesReply(
      reply,
      options((name) => dropped.push(name)),
    );
    expect(dropped).toEqual(["server_tool_use"]);
  });
});

it("a citation of a document, as messages have them, is a file citation", () => {
  const cited = {
    type: "char_location",
    cited_text: "two",
    document_index: 1,
    document_title: "notes.txt",
    start_char_index: 4,
    end_char_index: 7,
  };
  const citations = [
    { dialect: Dialect.MESSAGES, json: JSON.stringify(cited), title: "notes.txt" },
    { dialect: Dialect.GEMINI, json: "{}" },
  ];
  const parts = [{ kind: { case: "text" as const, value: { text: "two", citations } } }];
  const lost: string[] = [];
  const reply = create(ReplySchema, { id: "resp_1", parts, stopReason: StopReason.END });
  const body = encodeResponsesReply(
    reply,
    options((name) => lost.push(name)),
  );
  const { output } = JSON.parse(body.toString()) as {
    output: { content: { annotations: object[] }[] }[];
  };
  expect(output[0]?.content[0]?.annotations).toEqual([
    { type: "file_citation", file_id: "", filename: "notes.txt", index: 1 },
  ]);
  expect(lost).toEqual(["citations"]);
});
