import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { type GenerateEvent, StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { UnreadableReplyError } from "../../../../src/wire/json/value.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { decodeStream, deltaChunk, eventStream, usageChunk } from "./support.ts";

/** The events in short: kind, number, what is added. */
function brief(events: readonly GenerateEvent[]): unknown[] {
  return events.map(({ kind }) => {
    switch (kind.case) {
      case "partStart":
        return ["start", kind.value.index, kind.value.part?.kind.case];
      case "partDelta":
        return ["delta", kind.value.index, kind.value.delta.value];
      case "partEnd":
        return ["end", kind.value.index];
      case "end":
        return ["done", kind.value.stopReason];
      case "start":
      case "error":
      case undefined:
      default:
        return [kind.case];
    }
  });
}

const call = (index: number, init: object) => ({ tool_calls: [{ index, ...init }] });
const begun = (id: string, name: string) => ({
  id,
  type: "function",
  function: { name, arguments: "" },
});
const more = (text: string) => ({ function: { arguments: text } });

describe("R-TXT-1: a vendor's stream is read", () => {
  it("a vendor's stream is read with calls that are under way at once", () => {
    const events = decodeStream([
      deltaChunk({ role: "assistant", content: "" }),
      deltaChunk({ content: "hi" }),
      deltaChunk(call(0, begun("a", "f"))),
      deltaChunk(call(1, begun("b", "g"))),
      deltaChunk(call(0, more("{"))),
      deltaChunk(call(1, more("["))),
      deltaChunk(call(0, more("}"))),
      deltaChunk({}, "tool_calls"),
      usageChunk(3, 4),
    ]);
    expect(brief(events)).toEqual([
      ["start"],
      ["start", 0, "text"],
      ["delta", 0, "hi"],
      ["end", 0],
      ["start", 1, "toolCall"],
      ["start", 2, "toolCall"],
      ["delta", 2, "["],
      ["delta", 1, "{}"],
      ["end", 1],
      ["end", 2],
      ["done", StopReason.TOOL_CALLS],
    ]);
  });

  it("a vendor's stream is read with calls that share an index or have none, and lack ids", () => {
    const whole = (id: string, name: string) => ({ id, function: { name, arguments: "{}" } });
    const events = decodeStream([
      deltaChunk({ tool_calls: [{ index: 0, ...whole("a", "f") }] }),
      deltaChunk({ tool_calls: [{ index: 0, ...whole("b", "f") }] }),
      deltaChunk({ tool_calls: [whole("c", "g"), { function: { arguments: " " } }] }),
      deltaChunk({}, "stop"),
      "[DONE]",
    ]);
    expect(brief(events).filter((event) => (event as unknown[])[0] === "delta")).toEqual([
      ["delta", 0, "{}"],
      ["delta", 1, "{}"],
      ["delta", 2, "{} "],
    ]);
    const [, start] = decodeStream([deltaChunk(call(0, { function: { name: "f" } }))]);
    expect(start?.kind.case === "partStart" && start.kind.value.part?.kind.value).toMatchObject({
      id: "call_chatcmpl-1_0",
    });
  });

  it("R-TXT-3: a vendor's stream is read with reasoning under either name, sealed as the style's own", () => {
    const events = decodeStream([
      deltaChunk({ reasoning: "h", reasoning_content: null }),
      deltaChunk({ reasoning: "m" }),
      deltaChunk({ content: "hi" }, "stop"),
    ]);
    expect(brief(events)).toMatchObject([
      ["start"],
      ["start", 0, "reasoning"],
      ["delta", 0, "h"],
      ["delta", 0, "m"],
      ["delta", 0, { dialect: Dialect.CHAT_COMPLETIONS, signature: "reasoning" }],
      ["end", 0],
      ["start", 1, "text"],
      ["delta", 1, "hi"],
      ["end", 1],
      ["done", StopReason.END],
    ]);
  });

  it("a vendor's stream is read past chunks before the first that say nothing, and further choices", () => {
    const events = decodeStream([
      { id: "", choices: [], prompt_filter_results: [] },
      deltaChunk({ content: "a" }),
      { choices: [{ index: 1, delta: { content: "b" }, finish_reason: "stop" }] },
      deltaChunk({}, "stop"),
      "[DONE]",
    ]);
    expect(events[0]?.kind.value).toMatchObject({ id: "chatcmpl-1", created: 5n });
    expect(brief(events).slice(1)).toEqual([
      ["start", 0, "text"],
      ["delta", 0, "a"],
      ["end", 0],
      ["done", StopReason.END],
    ]);
  });

  it.each<[string, unknown[]]>([
    ["in a chunk of its own", [deltaChunk({}, "stop"), usageChunk(3, 4), "[DONE]"]],
    [
      "with the last choice",
      [{ ...deltaChunk({}, "stop"), usage: { prompt_tokens: 3, completion_tokens: 4 } }],
    ],
    [
      "growing in every chunk",
      [
        { ...deltaChunk({ content: "a" }), usage: { prompt_tokens: 3, completion_tokens: 1 } },
        { ...deltaChunk({}, "stop"), usage: { prompt_tokens: 3, completion_tokens: 4 } },
        "[DONE]",
      ],
    ],
  ])("a vendor's stream is read with usage %s", (_, chunks) => {
    const ends = decodeStream(chunks).flatMap(({ kind }) =>
      kind.case === "end" ? [kind.value.usage] : [],
    );
    expect(ends).toMatchObject([{ inputTokens: 3, outputTokens: 4 }]);
  });

  it("R-ERR-6: a vendor's stream that was cut has no end", () => {
    const decoder = chatCompletions.decodeStream();
    decoder.push([Buffer.from(eventStream([deltaChunk({ content: "a" })]))]);
    expect(decoder.end()).toEqual([]);
    const half = chatCompletions.decodeStream();
    half.push([Buffer.from('data: {"choices":[{"index":0,"delta":{},"finish_rea')]);
    expect(half.end()).toEqual([]);
  });

  it("a vendor's stream is complete where only its last empty line is missing", () => {
    const decoder = chatCompletions.decodeStream();
    // JSON may have line separators that end no line of a stream.
    const last = eventStream([deltaChunk({ content: "a\u2028b" }, "stop")]).trimEnd();
    decoder.push([Buffer.from(last)]);
    expect(brief(decoder.end()).at(-1)).toEqual(["done", StopReason.END]);
  });

  it.each<[string, unknown, ErrorCode]>([
    [
      "overload",
      { error: { message: "m", type: "overloaded_error" } },
      ErrorCode.UPSTREAM_OVERLOADED,
    ],
    [
      "a limit",
      { error: { message: "m", code: "rate_limit_exceeded" } },
      ErrorCode.RATE_LIMIT_EXCEEDED,
    ],
    ["a number", { error: { message: "m", code: 503 } }, ErrorCode.UPSTREAM_OVERLOADED],
    ["anything", { error: { message: "m" } }, ErrorCode.UPSTREAM_ERROR],
    ["a reason", deltaChunk({}, "error"), ErrorCode.UPSTREAM_ERROR],
  ])(
    "R-ERR-6: a vendor's stream ends in an error at %s, after which nothing comes",
    (_, failure, code) => {
      const events = decodeStream([
        deltaChunk({ content: "a" }),
        failure,
        deltaChunk({}, "stop"),
        "[DONE]",
      ]);
      expect(events.at(-1)?.kind).toMatchObject({ case: "error", value: { code } });
    },
  );

  it("a vendor's stream is unreadable where an event is no JSON", () => {
    const decoder = chatCompletions.decodeStream();
    expect(() => decoder.push([Buffer.from("data: <html>\n\n")])).toThrow(UnreadableReplyError);
  });
});
