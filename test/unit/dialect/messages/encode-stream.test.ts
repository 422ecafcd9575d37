import { create, type MessageInitShape } from "@bufbuild/protobuf";
import Anthropic from "@anthropic-ai/sdk";
import AnthropicV0 from "anthropic-sdk-v0";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type Part,
  PartSchema,
  ToolType,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  GenerationSchema,
  type Reply,
  ReplySchema,
  StopReason,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import type { ReplyOptions } from "../../../../src/dialect/codec.ts";
import { openSeal } from "../../../../src/dialect/turns/seal.ts";
import { replyEvents } from "../../../../src/dialect/reply-events.ts";
import { decodeMessagesReply } from "../../../../src/dialect/messages/decode-reply.ts";
import { MessagesStreamDecoder } from "../../../../src/dialect/messages/decode-stream.ts";
import { encodeMessagesReply } from "../../../../src/dialect/messages/encode-reply.ts";
import { MessagesStreamEncoder } from "../../../../src/dialect/messages/encode-stream.ts";

const dropped: string[] = [];
const options: ReplyOptions = {
  model: "public/model",
  callId: "0123456789abcdef0123456789abcdef",
  created: 1,
  now: () => 2,
  inputTokens: 7,
  generation: create(GenerationSchema),
  onDropped: (name) => dropped.push(name),
};

type PartInit = NonNullable<MessageInitShape<typeof PartSchema>["kind"]>;

function reply(kinds: readonly PartInit[], init: MessageInitShape<typeof ReplySchema> = {}): Reply {
  const parts = kinds.map((kind) => create(PartSchema, { kind }));
  return create(ReplySchema, { id: "msg_1", stopReason: StopReason.END, ...init, parts });
}

function encode(events: readonly GenerateEvent[]): string {
  const encoder = new MessagesStreamEncoder(options);
  return events.map((event) => encoder.push(event)).join("");
}

/** Returns the SDK's message of a stream, sent byte by byte. */
async function sdkMessage(text: string): Promise<unknown> {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
  const headers = { "content-type": "text/event-stream" };
  const fetch = (): Promise<Response> => Promise.resolve(new Response(body, { headers }));
  const client = new Anthropic({ apiKey: "k", baseURL: "http://gateway.invalid", fetch });
  const messages = [{ role: "user" as const, content: "hi" }];
  return client.messages.stream({ model: "m", max_tokens: 9, messages }).finalMessage();
}

async function sdkV0Message(text: string): Promise<unknown> {
  const headers = { "content-type": "text/event-stream" };
  const fetch = (): Promise<Response> => Promise.resolve(new Response(text, { headers }));
  const client = new AnthropicV0({ apiKey: "k", baseURL: "http://gateway.invalid", fetch });
  const messages = [{ role: "user" as const, content: "hi" }];
  return client.messages.stream({ model: "m", max_tokens: 9, messages }).finalMessage();
}

const anyText = fc.string({ unit: "grapheme", minLength: 1 });
const id = fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/);
const messagesSeal = { dialect: Dialect.MESSAGES };
const anyPart: fc.Arbitrary<PartInit> = fc.oneof(
  anyText.map((text): PartInit => ({ case: "text", value: { text } })),
  fc.tuple(anyText, id).map(
    ([text, signature]): PartInit => ({
      case: "reasoning",
      value: { text, seal: { ...messagesSeal, signature } },
    }),
  ),
  id.map((data): PartInit => ({ case: "reasoning", value: { seal: { ...messagesSeal, data } } })),
  fc.tuple(id, id, fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }))).map(
    ([callId, name, input]): PartInit => ({
      case: "toolCall",
      value: { id: callId, name, type: ToolType.FUNCTION, input: JSON.stringify(input) },
    }),
  ),
  fc.constant<PartInit>({
    case: "opaque",
    value: {
      dialect: Dialect.MESSAGES,
      type: "server_tool_use",
      json: '{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"x"}}',
    },
  }),
);
const anyUsage = fc
  .tuple(...Array.from({ length: 5 }, () => fc.integer({ min: 1, max: 1_000_000 })))
  .map(([fresh = 0, cached = 0, written = 0, output = 0, reasoning = 0]) => ({
    inputTokens: fresh + cached + written,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens: output,
    reasoningTokens: Math.min(output, reasoning),
    serviceTier: "priority",
  }));
const anyReply = fc
  .record({ kinds: fc.array(anyPart, { maxLength: 5 }), usage: anyUsage })
  .map(({ kinds, usage }) =>
    reply(kinds, {
      usage,
      model: options.model,
      serviceTier: "priority",
      stopReason: kinds.some((kind) => kind.case === "toolCall")
        ? StopReason.TOOL_CALLS
        : StopReason.END,
    }),
  );

/** The events put together again. */
function gather(events: readonly GenerateEvent[]): { parts: Part[]; end: unknown } {
  const parts: Part[] = [];
  let end: unknown;
  for (const { kind } of events) {
    if (kind.case === "partStart" && kind.value.part !== undefined) parts.push(kind.value.part);
    if (kind.case === "end") end = kind.value;
    if (kind.case !== "partDelta") continue;
    const part = parts.at(-1)?.kind;
    const { delta } = kind.value;
    if (delta.case === "text" && (part?.case === "text" || part?.case === "reasoning")) {
      part.value.text += delta.value;
    }
    if (delta.case === "input" && part?.case === "toolCall") part.value.input += delta.value;
    if (delta.case === "seal" && part?.case === "reasoning") part.value.seal = delta.value;
  }
  return { parts, end };
}

function decode(text: string, at: number): GenerateEvent[] {
  const bytes = Buffer.from(text);
  const decoder = new MessagesStreamDecoder();
  const cut = Math.min(at, bytes.length);
  return [
    ...decoder.push([Buffer.from(bytes.subarray(0, cut))]),
    ...decoder.push([Buffer.from(bytes.subarray(cut))]),
    ...decoder.end(),
  ];
}

describe("R-TXT-1, R-TXT-3: a reply through messages and back", () => {
  it("a reply is the same after its way through messages and back", () => {
    fc.assert(
      fc.property(anyReply, (sent) => {
        expect(decodeMessagesReply(encodeMessagesReply(sent, options))).toEqual(sent);
      }),
    );
  });

  it("a reply through messages and back is the same, streamed, wherever the bytes are cut", () => {
    fc.assert(
      fc.property(anyReply, fc.nat(4_000), (sent, at) => {
        const { parts, end } = gather(decode(encode(replyEvents(sent)), at));
        expect(parts).toEqual(sent.parts);
        expect(end).toMatchObject({
          stopReason: sent.stopReason,
          usage: sent.usage,
          serviceTier: "priority",
        });
      }),
    );
  });
});

describe("wire §1.3: the SDKs read what is streamed", () => {
  const sent = reply(
    [
      { case: "reasoning", value: { text: "hm", seal: { ...messagesSeal, signature: "sig" } } },
      { case: "reasoning", value: { seal: { dialect: Dialect.RESPONSES, data: "enc" } } },
      { case: "text", value: { text: 'grüße "☃"\n' } },
      { case: "text", value: { text: "" } },
      {
        case: "toolCall",
        value: { id: "functions.f:0", name: "f", type: ToolType.FUNCTION, input: "" },
      },
      {
        case: "toolCall",
        value: { id: "t2", name: "g", type: ToolType.CUSTOM, input: 'a "b"' },
      },
    ],
    { usage: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 3 }, stopReason: 2 },
  );
  const expected = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "public/model",
    content: [
      { type: "thinking", thinking: "hm", signature: "sig" },
      { type: "redacted_thinking", data: expect.stringMatching(/^uas1\./) },
      { type: "text", text: 'grüße "☃"\n' },
      { type: "tool_use", id: expect.stringMatching(/^toolu_[0-9a-f]{40}$/), name: "f", input: {} },
      { type: "tool_use", id: "t2", name: "g", input: { input: 'a "b"' } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: { input_tokens: 6, cache_read_input_tokens: 4, output_tokens: 3 },
  };

  it("the current SDK reads what is streamed", async () => {
    expect(await sdkMessage(encode(replyEvents(sent)))).toMatchObject(expected);
  });

  it("the SDK before the current one reads what is streamed", async () => {
    expect(await sdkV0Message(encode(replyEvents(sent)))).toMatchObject(expected);
  });

  it("the SDKs read the same from the whole reply", () => {
    expect(JSON.parse(encodeMessagesReply(sent, options).toString())).toMatchObject(expected);
  });

  it("R-TXT-4: input tokens come first and are never 0", () => {
    const [start = ""] = encode(replyEvents(sent)).split("\n\n");
    expect(start).toMatch(/^event: message_start\ndata: /);
    expect(JSON.parse(start.slice(start.indexOf("{")))).toMatchObject({
      message: { usage: { input_tokens: 7, output_tokens: 0 } },
    });
  });

  it("R-ERR-6: a failure is an error event, with no end behind it", () => {
    const encoder = new MessagesStreamEncoder(options);
    const error = new GatewayError(ErrorCode.UPSTREAM_OVERLOADED, "busy");
    expect(encoder.fail(error)).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy","details":{"error_code":"upstream_overloaded"}}}\n\n',
    );
  });
});

describe("wire §3: parts that interleave", () => {
  it("come out one after the other", async () => {
    const [start, ...events] = replyEvents(
      reply([
        { case: "toolCall", value: { id: "a", name: "f", type: 1, input: '{"x":1}' } },
        { case: "toolCall", value: { id: "b", name: "g", type: 1, input: '{"y":2}' } },
        { case: "text", value: { text: "done" } },
      ]),
    );
    const order = [0, 3, 1, 4, 6, 7, 5, 8, 2, 9];
    const shuffled = order.flatMap((at) => events[at] ?? []);
    expect(shuffled).toHaveLength(events.length);
    const text = encode(start === undefined ? [] : [start, ...shuffled]);
    expect(await sdkMessage(text)).toMatchObject({
      content: [
        { type: "tool_use", id: "a", input: { x: 1 } },
        { type: "tool_use", id: "b", input: { y: 2 } },
        { type: "text", text: "done" },
      ],
    });
    const indexes = [...text.matchAll(/content_block_(start|stop)","index":(\d)/g)];
    expect(indexes.map(([, word, index]) => `${word}${index}`)).toEqual([
      "start0",
      "stop0",
      "start1",
      "stop1",
      "start2",
      "stop2",
    ]);
  });
});

describe("R-TXT-3: foreign reasoning through a messages client", () => {
  it("comes back with its summaries, id and seal, whole and streamed", () => {
    const value = {
      summaries: ["one", "two"],
      itemId: "rs_1",
      seal: { dialect: Dialect.RESPONSES, data: "enc" },
    };
    const sent = reply([{ case: "reasoning", value }]);
    const whole = JSON.parse(encodeMessagesReply(sent, options).toString());
    const block = whole.content[0];
    expect(block).toMatchObject({ type: "thinking", thinking: "one\n\ntwo" });
    const streamed = encode(replyEvents(sent));
    for (const text of [JSON.stringify(block), streamed]) {
      const [, signature = ""] = /"signature":"(uas1\.[^"]+)"/.exec(text) ?? [];
      expect(openSeal(signature)).toMatchObject(value);
    }
  });
});
