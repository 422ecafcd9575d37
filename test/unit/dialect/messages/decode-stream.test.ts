import { describe, expect, it } from "vitest";
import { StopReason, type GenerateEvent } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { UnreadableReplyError } from "../../../../src/wire/json/value.ts";
import {
  decodeMessagesError,
  decodeMessagesReply,
} from "../../../../src/dialect/messages/decode-reply.ts";
import { MessagesStreamDecoder } from "../../../../src/dialect/messages/decode-stream.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";

function frames(
  ...events: ({ readonly type: string } & Readonly<Record<string, unknown>>)[]
): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

function decode(text: string): GenerateEvent[] {
  const decoder = new MessagesStreamDecoder();
  return [...decoder.push([Buffer.from(text)]), ...decoder.end()];
}

const start = {
  type: "message_start",
  message: { id: "msg_1", model: "v", usage: { input_tokens: 5, cache_read_input_tokens: 3 } },
};
const block = (type: string, more = {}) => ({
  type: "content_block_start",
  index: 0,
  content_block: { type, ...more },
});
const delta = (type: string, more: object) => ({
  type: "content_block_delta",
  index: 0,
  delta: { type, ...more },
});
const stop = { type: "content_block_stop", index: 0 };
const end = (reason: string, more = {}) => ({
  type: "message_delta",
  delta: { stop_reason: reason, ...more },
  usage: { output_tokens: 4, output_tokens_details: { thinking_tokens: 2 } },
});
const over = { type: "message_stop" };

function last(events: readonly GenerateEvent[]): unknown {
  return events.at(-1)?.kind;
}

describe("wire §1.3: a stream of messages", () => {
  it("a stream of messages counts cached tokens within the input, and the latest totals", () => {
    expect(last(decode(frames(start, end("end_turn"), over)))).toMatchObject({
      case: "end",
      value: {
        stopReason: StopReason.END,
        usage: { inputTokens: 8, cachedInputTokens: 3, outputTokens: 4, reasoningTokens: 2 },
      },
    });
  });

  it.each([
    ["max_tokens", StopReason.LENGTH],
    ["model_context_window_exceeded", StopReason.LENGTH],
    ["stop_sequence", StopReason.STOP_SEQUENCE],
    ["pause_turn", StopReason.PAUSE],
    ["of_tomorrow", StopReason.END],
  ])("contains its end reason: %s", (word, stopReason) => {
    const events = decode(frames(start, end(word), over));
    expect(last(events)).toMatchObject({ value: { stopReason } });
  });

  it("a stream of messages keeps the vendor's explanation of a refusal", () => {
    const stop_details = { type: "refusal", category: "bio", explanation: "no" };
    const events = decode(frames(start, end("refusal", { stop_details }), over));
    expect(last(events)).toMatchObject({
      value: { stopReason: StopReason.REFUSAL, stopDetail: "no" },
    });
  });

  it("a stream of messages reads text, citations, reasoning with its signature, and calls", () => {
    const cite = { type: "web_search_result_location", url: "https://a.b", title: "T" };
    const events = decode(
      frames(
        start,
        { type: "ping" },
        block("text", { text: "" }),
        delta("text_delta", { text: "a" }),
        delta("citations_delta", { citation: cite }),
        stop,
        block("thinking", { thinking: "", signature: "" }),
        delta("thinking_delta", { thinking: "hm" }),
        delta("signature_delta", { signature: "sig" }),
        stop,
        block("tool_use", { id: "t", name: "f", input: {} }),
        delta("input_json_delta", { partial_json: "" }),
        delta("input_json_delta", { partial_json: '{"x":1}' }),
        stop,
      ),
    );
    const deltas = events.flatMap(({ kind }) =>
      kind.case === "partDelta" ? [kind.value.delta] : [],
    );
    expect(deltas).toMatchObject([
      { case: "text", value: "a" },
      { case: "citation", value: { url: "https://a.b", title: "T", json: JSON.stringify(cite) } },
      { case: "text", value: "hm" },
      { case: "seal", value: { signature: "sig" } },
      { case: "input", value: '{"x":1}' },
    ]);
  });

  it("a stream of messages gives calls without input, or with it in their start, a whole input", () => {
    const tool = (input: object) =>
      decode(frames(start, block("tool_use", { id: "t", name: "f", input }), stop));
    expect(tool({})[2]?.kind).toMatchObject({ value: { delta: { value: "{}" } } });
    expect(tool({ x: 1 })[2]?.kind).toMatchObject({ value: { delta: { value: '{"x":1}' } } });
  });

  it("a stream of messages keeps a server's tool whole, with the input that came in pieces", () => {
    const events = decode(
      frames(
        start,
        block("server_tool_use", { id: "s", input: {} }),
        delta("input_json_delta", { partial_json: '{"query":' }),
        delta("input_json_delta", { partial_json: '"x"}' }),
        stop,
      ),
    );
    expect(events[1]?.kind).toMatchObject({
      case: "partStart",
      value: {
        part: {
          kind: {
            value: { json: '{"type":"server_tool_use","id":"s","input":{"query":"x"}}' },
          },
        },
      },
    });
  });
});

describe("R-ERR-6: a stream that ends otherwise", () => {
  it.each([
    ["overloaded_error", ErrorCode.UPSTREAM_OVERLOADED],
    ["rate_limit_error", ErrorCode.RATE_LIMIT_EXCEEDED],
    ["authentication_error", ErrorCode.SERVICE_UNAVAILABLE],
    ["api_error", ErrorCode.UPSTREAM_ERROR],
  ])("a stream that ends with %s is that error, and nothing follows", (type, code) => {
    const error = { type: "error", error: { type, message: "so" } };
    const events = decode(frames(start, error, over));
    expect(events).toHaveLength(2);
    expect(last(events)).toMatchObject({ case: "error", value: { code, message: "so" } });
  });

  it("a stream that is cut has no end", () => {
    expect(decode(frames(start, block("text"), delta("text_delta", { text: "a" })))).toHaveLength(
      3,
    );
    expect(decode(frames(start, block("text")))).toHaveLength(2);
  });

  it("a stream without its last event, or its last line, is complete if it contains its stop reason", () => {
    expect(last(decode(frames(start, end("end_turn"))))).toMatchObject({ case: "end" });
    const text = frames(start, end("end_turn"), over).trimEnd();
    expect(decode(text).filter(({ kind }) => kind.case === "end")).toHaveLength(1);
    expect(decode(`${frames(start, end("end_turn"), over)}data: [DONE]\n\n`)).toHaveLength(2);
  });

  it("blocks that their vendor does not end, end with the reply, with all of their input", () => {
    const call = { id: "toolu_1", name: "f", input: {} };
    const input = delta("input_json_delta", { partial_json: '{"a":1}' });
    for (const rest of [[end("tool_use"), over], [end("tool_use")]]) {
      const events = decode(
        frames(start, block("text"), { ...block("tool_use", call), index: 1 }, ...rest),
      );
      const ends = events.filter(({ kind }) => kind.case === "partEnd");
      expect(ends).toHaveLength(2);
      expect(last(events)).toMatchObject({
        case: "end",
        value: { stopReason: StopReason.TOOL_CALLS },
      });
    }
    const begun = frames(start, block("tool_use", call), input, block("tool_use", call), input);
    const events = decode(begun + frames(end("tool_use"), over));
    expect(events.map(({ kind }) => kind.case)).toEqual([
      "start",
      ...["partStart", "partDelta", "partEnd"],
      ...["partStart", "partDelta", "partEnd"],
      "end",
    ]);
  });

  it("a text or thought whose vendor does not begin its block, begins with its first delta", () => {
    const events = decode(
      frames(
        start,
        delta("thinking_delta", { thinking: "hm" }),
        stop,
        { ...delta("text_delta", { text: "a" }), index: 1 },
        { ...delta("text_delta", { text: "b" }), index: 1 },
        { ...stop, index: 1 },
        end("end_turn"),
        over,
      ),
    );
    expect(events.map(({ kind }) => kind.case)).toEqual([
      "start",
      ...["partStart", "partDelta", "partEnd"],
      ...["partStart", "partDelta", "partDelta", "partEnd"],
      "end",
    ]);
    expect(events[1]?.kind.value).toMatchObject({ part: { kind: { case: "reasoning" } } });
    expect(events[4]?.kind.value).toMatchObject({ part: { kind: { case: "text" } } });
  });

  it("a stream of another style cannot be read", () => {
    const chunk = 'data: {"id":"c","object":"chat.completion.chunk","choices":[]}\n\n';
    expect(() => decode(chunk)).toThrow(UnreadableReplyError);
    expect(() => decode("data: <html>\n\n")).toThrow(UnreadableReplyError);
    expect(() => decodeMessagesReply(Buffer.from('{"choices":[]}'))).toThrow(UnreadableReplyError);
  });
});

describe("R-ERR-4: a vendor's refusal", () => {
  it("a vendor's refusal has its message and its most exact code", () => {
    const body = (details: object) =>
      Buffer.from(
        JSON.stringify({ type: "error", error: { type: "t", message: "m", ...details } }),
      );
    expect(decodeMessagesError(body({}))).toEqual({ message: "m", code: "t" });
    const details = { details: { error_code: "exact" } };
    expect(decodeMessagesError(body(details))).toEqual({ message: "m", code: "exact" });
    expect(decodeMessagesError(Buffer.from("<html>"))).toBeUndefined();
  });
});
