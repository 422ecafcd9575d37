import { describe, expect, it } from "vitest";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { MediaType, ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type Reply, StopReason } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { UnreadableReplyError } from "../../../src/dialect/json/value.ts";
import { gemini } from "../../../src/dialect/gemini/dialect.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { bytes, chunk, endOf, sse, streamed, whole } from "./reply.ts";

const kindsOf = ({ parts }: Reply): unknown[] => parts.map(({ kind }) => kind);

const sealed = (signature: string, text = ""): object => ({
  case: "reasoning",
  value: { text, seal: { dialect: Dialect.GEMINI, signature, data: "" } },
});
const said = (text: string): object => ({ case: "text", value: { text } });

describe("parts", () => {
  it("texts and thoughts of one kind are joined, everything else stands on its own", () => {
    const reply = whole(
      chunk(
        [
          { text: "Hm", thought: true },
          { text: ".", thought: true },
          { text: "A" },
          { text: "" },
          { text: "B" },
          { inlineData: { mimeType: "image/png", data: "iV" } },
          { inlineData: { mimeType: "image/png", data: "thought" }, thought: true },
          { inlineData: { mimeType: "audio/wav", data: "UklG" } },
          { executableCode: { language: "PYTHON", code: "1" } },
          {},
        ],
        { finish: "STOP" },
      ),
    );
    expect(kindsOf(reply)).toMatchObject([
      { case: "reasoning", value: { text: "Hm." } },
      said("AB"),
      { case: "media", value: { type: MediaType.IMAGE, source: { case: "base64", value: "iV" } } },
      { case: "media", value: { type: MediaType.AUDIO, mimeType: "audio/wav" } },
      {
        case: "opaque",
        value: {
          dialect: Dialect.GEMINI,
          type: "executableCode",
          json: '{"executableCode":{"language":"PYTHON","code":"1"}}',
        },
      },
    ]);
    expect(reply).toMatchObject({ id: "resp", model: "gemini-x-001", stopReason: StopReason.END });
  });

  it("calls have the vendor's id, or one that is always the same and no other call's", () => {
    const one = { functionCall: { name: "f", args: { x: 1 } } };
    const named = { functionCall: { id: "theirs", name: "g" } };
    const reply = whole(chunk([one, one, named], { finish: "STOP" }));
    expect(reply.stopReason).toBe(StopReason.TOOL_CALLS);
    const calls = kindsOf(reply).map((kind) => (kind as { value: { id: string } }).value);
    expect(calls).toMatchObject(
      [
        { id: /^call_[0-9a-f]{24}$/, name: "f", input: '{"x":1}', type: ToolType.FUNCTION },
        { name: "f" },
        { id: "theirs", name: "g", input: "{}" },
      ].map((each) => ({
        ...each,
        ...(each.id instanceof RegExp && { id: expect.stringMatching(each.id) }),
      })),
    );
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
    expect(whole(chunk([one, one, named], { finish: "STOP" }))).toEqual(reply);
  });

  it("R-TXT-3 signatures become seals that keep their place", () => {
    const call = { functionCall: { name: "f" } };
    const reply = whole(
      chunk(
        [
          { text: "T", thought: true, thoughtSignature: "S1" },
          { text: "Hm", thought: true },
          { ...call, thoughtSignature: "S2" },
          call,
          { text: "A", thoughtSignature: "S3" },
          { text: "", thoughtSignature: "S4" },
          { thoughtSignature: "S5" },
        ],
        { finish: "STOP" },
      ),
    );
    expect(kindsOf(reply)).toMatchObject([
      sealed("thought.S1", "T"),
      sealed("S2", "Hm"),
      { case: "toolCall" },
      { case: "toolCall" },
      said("A"),
      sealed("content.S3"),
      sealed("content.S4"),
      sealed("content.S5"),
    ]);
  });

  it("sources become citations, each once", () => {
    const web = { uri: "https://a.example", title: "A" };
    const candidate = {
      citationMetadata: {
        citationSources: [{ startIndex: 0, endIndex: 9, uri: "https://b.example" }],
      },
      groundingMetadata: { groundingChunks: [{ web }, { web }, { retrievedContext: {} }] },
    };
    const reply = whole(chunk([{ text: "A" }], { finish: "STOP", candidate }));
    expect(kindsOf(reply)).toMatchObject([
      {
        value: {
          citations: [
            { url: "https://b.example", dialect: Dialect.GEMINI },
            { url: "https://a.example", title: "A", json: JSON.stringify({ web }) },
          ],
        },
      },
    ]);
  });
});

describe("the end", () => {
  it.each([
    ["STOP", StopReason.END, ""],
    ["MAX_TOKENS", StopReason.LENGTH, ""],
    ["SAFETY", StopReason.CONTENT_FILTER, "SAFETY"],
    ["RECITATION", StopReason.CONTENT_FILTER, "RECITATION"],
    ["PROHIBITED_CONTENT", StopReason.CONTENT_FILTER, "PROHIBITED_CONTENT"],
    ["CONTINUATION", StopReason.PAUSE, ""],
    ["OTHER", StopReason.UNSPECIFIED, ""],
    ["SOMETHING_NEW", StopReason.UNSPECIFIED, ""],
  ])("the finish reason %s of Gemini has its stop reason", (finish, stopReason, stopDetail) => {
    const reply = whole(chunk([{ text: "A" }], { finish }));
    expect(reply).toMatchObject({ stopReason, stopDetail });
  });

  it("the end is the vendor's explanation where it gives one", () => {
    const candidate = { finishMessage: "Because." };
    const reply = whole(chunk([], { finish: "SAFETY", candidate }));
    expect(reply).toMatchObject({ parts: [], stopDetail: "Because." });
  });

  it("the end is the filter's where the prompt was refused", () => {
    const promptFeedback = { blockReason: "PROHIBITED_CONTENT" };
    const reply = whole({ promptFeedback, usageMetadata: { promptTokenCount: 3 } });
    expect(reply).toMatchObject({
      stopReason: StopReason.CONTENT_FILTER,
      stopDetail: "PROHIBITED_CONTENT",
      usage: { inputTokens: 3, outputTokens: 0 },
    });
  });

  it.each(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])(
    "R-TXT-2 is a failure where Gemini threw the reply away: %s",
    (finish) => {
      const failed = chunk([], { finish });
      expect(() => whole(failed)).toThrow(UnreadableReplyError);
      expect(endOf(streamed(sse(failed)))).toMatchObject({ code: ErrorCode.UPSTREAM_ERROR });
    },
  );

  it.each([
    ["no candidate", {}],
    ["no reason", chunk([{ text: "A" }])],
    ["no object", [1]],
    ["an error", { error: { code: 500, message: "m" } }],
  ])("a whole reply with %s is unreadable", (_what, value) => {
    expect(() => whole(value)).toThrow(UnreadableReplyError);
  });
});

describe("usage", () => {
  it("R-TXT-2 counts thoughts as output and what tools brought as input", () => {
    const usage = {
      promptTokenCount: 10,
      cachedContentTokenCount: 6,
      candidatesTokenCount: 4,
      thoughtsTokenCount: 5,
      toolUsePromptTokenCount: 2,
      totalTokenCount: 21,
    };
    expect(whole(chunk([], { finish: "STOP", usage })).usage).toMatchObject({
      inputTokens: 12,
      cachedInputTokens: 6,
      cacheWriteTokens: 0,
      outputTokens: 9,
      reasoningTokens: 5,
    });
  });

  it.each([{}, { promptTokenCount: -1, candidatesTokenCount: 1.5, thoughtsTokenCount: "9x" }])(
    "is not reported without a count of the input, which would be free: %j",
    (usage) => expect(whole(chunk([], { finish: "STOP", usage })).usage).toBeUndefined(),
  );

  it("never has anything but counts", () => {
    const usage = { promptTokenCount: 3, candidatesTokenCount: 1.5, thoughtsTokenCount: "9x" };
    const counted = whole(chunk([], { finish: "STOP", usage })).usage;
    expect(counted).toMatchObject({ inputTokens: 3, outputTokens: 0, reasoningTokens: 0 });
  });

  it("is absent where the vendor told none", () => {
    const { usageMetadata: _, ...rest } = chunk([], { finish: "STOP" }) as Record<string, unknown>;
    expect(whole(rest).usage).toBeUndefined();
  });
});

describe("refusals", () => {
  const error = { code: 400, message: "Wrong.", status: "INVALID_ARGUMENT" };

  it.each([
    [{ error }, { message: "Wrong.", code: "INVALID_ARGUMENT" }],
    [[{ error }], { message: "Wrong.", code: "INVALID_ARGUMENT" }],
    [{ error: {} }, { message: "", code: "" }],
    [{ error: "x" }, undefined],
    [[], undefined],
    [null, undefined],
  ])("the refusal %j is read", (body, expected) => {
    expect(gemini.decodeError(bytes(body))).toEqual(expected);
  });

  it("errors of another form are not read as refusals of this style", () => {
    expect(gemini.decodeError(Buffer.from("<html>"))).toBeUndefined();
  });
});
