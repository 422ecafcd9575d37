import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type GenerateEvent,
  GenerateEventSchema,
  GenerationSchema,
  StopReason,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { replyOptions } from "./support.ts";

const event = (kind: string, value: unknown) =>
  create(GenerateEventSchema, { kind: { case: kind, value } } as never);
const started = (index: number, kind: string, value: object = {}) =>
  event("partStart", { index, part: { kind: { case: kind, value } } });
const added = (index: number, kind: string, value: unknown) =>
  event("partDelta", { index, delta: { case: kind, value } });

function write(events: readonly GenerateEvent[], includeUsage = false) {
  const dropped: string[] = [];
  const encoder = chatCompletions.encodeStream(
    replyOptions({
      generation: create(GenerationSchema, { includeUsage }),
      onDropped: (name) => dropped.push(name),
    }),
  );
  const text = events.map((each) => encoder.push(each)).join("");
  const chunks = text
    .split("\n\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)));
  const deltas = chunks.flatMap(({ choices = [] }) =>
    choices.map((each: { delta: object }) => each.delta),
  );
  return { text, chunks, deltas, dropped };
}

describe("R-TXT-1: a stream for a client", () => {
  const plain = [
    event("start", { id: "msg_1" }),
    started(0, "text"),
    added(0, "text", 'a"\n'),
    event("partEnd", { index: 0 }),
    event("end", { stopReason: StopReason.END, usage: { inputTokens: 3, outputTokens: 4 } }),
  ];

  it("a stream for a client has the role first, the reason last, and no usage that was not asked for", () => {
    const { text, chunks, deltas } = write(plain);
    expect(deltas).toEqual([
      { role: "assistant", content: "", refusal: null },
      { content: 'a"\n' },
      {},
    ]);
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(text).not.toContain("usage");
    for (const chunk of chunks) {
      expect(chunk).toMatchObject({
        id: "chatcmpl-0123456789abcdef0123456789abcdef",
        object: "chat.completion.chunk",
        created: 1_700_000_000,
        model: "public",
      });
    }
  });

  it("a stream for a client has usage in a separate chunk if requested, and null before", () => {
    const { chunks } = write(plain, true);
    expect(chunks.slice(0, -1).map(({ usage }) => usage)).toEqual([null, null, null]);
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    });
  });

  it("numbers calls by themselves, and writes arguments where there were none", () => {
    const { deltas } = write([
      event("start", {}),
      started(0, "text"),
      started(1, "toolCall", { id: "a", name: "f", type: 1 }),
      event("partEnd", { index: 1 }),
      started(2, "toolCall", { id: "b", name: "g", type: 2 }),
      added(2, "input", "x"),
      event("partEnd", { index: 2 }),
      event("end", { stopReason: StopReason.TOOL_CALLS }),
    ]);
    expect(deltas.slice(1)).toEqual([
      {
        tool_calls: [
          { index: 0, id: "a", type: "function", function: { name: "f", arguments: "" } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: "{}" } }] },
      { tool_calls: [{ index: 1, id: "b", type: "custom", custom: { name: "g", input: "" } }] },
      { tool_calls: [{ index: 1, custom: { input: "x" } }] },
      {},
    ]);
  });

  it("a stream for a client keeps summaries and further reasoning apart", () => {
    const { deltas, dropped } = write([
      event("start", {}),
      started(0, "reasoning"),
      added(0, "summaryStart", true),
      added(0, "summary", "a"),
      added(0, "summaryStart", true),
      added(0, "summary", "b"),
      added(0, "seal", { dialect: Dialect.RESPONSES, data: "x" }),
      started(1, "reasoning"),
      added(1, "text", "c"),
      started(2, "opaque", { dialect: Dialect.RESPONSES, type: "web_search_call", json: "{}" }),
      event("end", { stopReason: StopReason.REFUSAL, stopDetail: "no" }),
    ]);
    const reasoning = deltas.map(
      (delta: { reasoning_content?: string }) => delta.reasoning_content,
    );
    expect(reasoning.join("")).toBe("a\n\nb\n\nc");
    expect(deltas.at(-2)).toEqual({ refusal: "no" });
    expect(dropped).toEqual(["reasoning.seal", "web_search_call"]);
  });

  it("shows sources by their position in the whole content", () => {
    const cited = { dialect: Dialect.MESSAGES, json: "{}", url: "https://x.test", title: "X" };
    const { deltas } = write([
      event("start", {}),
      started(0, "text"),
      added(0, "text", "abc"),
      started(1, "text"),
      added(1, "text", "de"),
      added(1, "citation", cited),
    ]);
    expect(deltas.at(-1)).toEqual({
      annotations: [
        {
          type: "url_citation",
          url_citation: { url: "https://x.test", title: "X", start_index: 3, end_index: 5 },
        },
      ],
    });
  });

  it("R-ERR-6: a stream for a client ends in an error without a terminal event", () => {
    const { text } = write([
      event("start", {}),
      event("error", { code: ErrorCode.UPSTREAM_OVERLOADED, message: "m" }),
    ]);
    expect(text.endsWith("\n\n")).toBe(true);
    expect(text).not.toContain("[DONE]");
    expect(JSON.parse(text.trimEnd().split("\n\n").at(-1)?.slice(6) ?? "")).toMatchObject({
      error: { message: "m", code: "upstream_overloaded" },
    });
    const failed = chatCompletions
      .encodeStream(replyOptions())
      .fail(new GatewayError(ErrorCode.UPSTREAM_ERROR, "x"));
    expect(failed).toMatch(/^data: \{"error":.*\}\n\n$/);
  });
});
