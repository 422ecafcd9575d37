import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { MediaType, ToolType } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { type Reply, StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { UnreadableReplyError } from "../../../../src/wire/json/value.ts";
import { gemini } from "../../../../src/dialect/gemini/dialect.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
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

  it("is absent if the vendor reported none", () => {
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

describe("sources", () => {
  const uri = "https://a.example";
  const grounding = { groundingMetadata: { groundingChunks: [{ web: { uri, title: "A" } }] } };
  const sealedText = { text: "", thoughtSignature: "S" };
  /** The texts of a stream, with the addresses that each cites. */
  const cited = (...chunks: object[]): unknown[] => {
    const parts: { text: string; urls: string[] }[] = [];
    const open = new Set<number>();
    const texts = new Map<number, { text: string; urls: string[] }>();
    for (const { kind } of streamed(sse(...chunks))) {
      if (kind.case === "partStart") {
        open.add(kind.value.index);
        if (kind.value.part?.kind.case !== "text") continue;
        const text = { text: "", urls: [] };
        texts.set(kind.value.index, text);
        parts.push(text);
      }
      if (kind.case === "partEnd") open.delete(kind.value.index);
      if (kind.case !== "partDelta") continue;
      const { index, delta } = kind.value;
      expect(open.has(index)).toBe(true);
      const text = texts.get(index);
      if (text && delta.case === "text") text.text += delta.value;
      if (text && delta.case === "citation") text.urls.push(delta.value.url);
    }
    expect(open.size).toBe(0);
    return parts;
  };
  const A = { text: "A" };
  const call = { functionCall: { name: "f", args: {} } };
  const stop = { finish: "STOP" };

  it.each<[string, object[], object[]]>([
    ["behind a signature", [A, sealedText], []],
    ["in a text with a signature", [{ ...A, thoughtSignature: "S" }], []],
    ["behind a signature of its own part", [A, { thoughtSignature: "S" }], []],
    ["behind a call", [A, call], []],
    ["behind a call with a signature", [A, { ...call, thoughtSignature: "S" }], []],
    ["behind a thought", [{ text: "T", thought: true }, A], []],
  ])("that come with the parts of a chunk belong to its text: %s", (_where, parts) => {
    const candidate = grounding;
    expect(cited(chunk(parts, { ...stop, candidate }))).toEqual([{ text: "A", urls: [uri] }]);
    const reply = whole(chunk(parts, { ...stop, candidate }));
    expect(kindsOf(reply).find((kind) => (kind as { case: string }).case === "text")).toMatchObject(
      {
        value: { text: "A", citations: [{ url: uri, title: "A" }] },
      },
    );
  });

  it.each<[string, object[]]>([
    [
      "a chunk with an empty text",
      [chunk([A]), chunk([{ text: "" }], { ...stop, candidate: grounding })],
    ],
    ["a chunk without parts", [chunk([A]), chunk([], { ...stop, candidate: grounding })]],
    [
      "a last chunk without content",
      [chunk([A]), { candidates: [{ finishReason: "STOP", ...grounding }] }],
    ],
    [
      "a chunk behind the one with a signature",
      [chunk([{ ...A, thoughtSignature: "S" }]), chunk([], { ...stop, candidate: grounding })],
    ],
    ["a chunk before the text", [chunk([], { candidate: grounding }), chunk([A], stop)]],
    [
      "a chunk between texts",
      [chunk([{ text: "" }]), chunk([A]), chunk([], { candidate: grounding }), chunk([], stop)],
    ],
  ])("that come in %s belong to the text", (_where, chunks) => {
    expect(cited(...chunks)).toEqual([{ text: "A", urls: [uri] }]);
  });

  it("that follow a call, or any text, have separate texts", () => {
    const late = chunk([], { ...stop, candidate: grounding });
    expect(cited(chunk([A]), chunk([call]), late)).toEqual([
      { text: "A", urls: [] },
      { text: "", urls: [uri] },
    ]);
    expect(cited(late)).toEqual([{ text: "", urls: [uri] }]);
  });

  it("are those of searches, maps, documents, quoted texts and pages that were read, each once", () => {
    const urlMetadata = [
      { retrievedUrl: "https://page.example", urlRetrievalStatus: "URL_RETRIEVAL_STATUS_SUCCESS" },
      { retrievedUrl: "https://gone.example", urlRetrievalStatus: "URL_RETRIEVAL_STATUS_ERROR" },
      { retrievedUrl: uri },
    ];
    const candidate = {
      citationMetadata: { citations: [{ uri: "https://quoted.example", license: "mit" }] },
      groundingMetadata: {
        groundingChunks: [
          { web: { uri, title: "A" } },
          { maps: { uri: "https://maps.example", title: "M", placeId: "1" } },
          { retrievedContext: { uri: "https://doc.example" } },
          { web: {} },
        ],
      },
      urlContextMetadata: { urlMetadata },
    };
    const first = chunk([A], { candidate });
    expect(cited(first, chunk([{ text: "B" }], { ...stop, candidate }))).toEqual([
      {
        text: "AB",
        urls: [
          "https://quoted.example",
          uri,
          "https://maps.example",
          "https://doc.example",
          "https://page.example",
        ],
      },
    ]);
    // The charged figures equal the shown ones.
    expect(whole(chunk([A], { ...stop, candidate })).usage).toMatchObject({ webFetches: 2 });
  });

  it("leave a signature where it was, if the text goes on behind it", () => {
    const reply = whole(
      chunk([{ ...A, thoughtSignature: "S" }, { text: "B" }, sealedText], {
        ...stop,
        candidate: grounding,
      }),
    );
    expect(kindsOf(reply)).toMatchObject([
      { case: "text", value: { text: "A", citations: [{ url: uri }] } },
      sealed("content.S"),
      said("B"),
      sealed("content.S"),
    ]);
  });
});

describe("calls", () => {
  const callsOf = (...chunks: object[]): unknown[] => {
    const calls: { id: string; name: string; input: string }[] = [];
    for (const { kind } of streamed(sse(...chunks))) {
      if (kind.case === "partStart" && kind.value.part?.kind.case === "toolCall") {
        const { id, name } = kind.value.part.kind.value;
        calls.push({ id, name, input: "" });
      }
      if (kind.case === "partDelta" && kind.value.delta.case === "input") {
        const last = calls.at(-1);
        if (last) last.input += kind.value.delta.value;
      }
    }
    return calls;
  };
  const stop = { finish: "STOP" };
  const named = (name: string): object => ({ functionCall: { name, args: { x: 1 } } });

  it("that arrive in several chunks are several, each with a unique id", () => {
    const calls = callsOf(chunk([named("f")]), chunk([named("f"), named("g")], stop));
    expect(calls).toMatchObject([{ name: "f" }, { name: "f" }, { name: "g" }]);
    expect(new Set(calls.map((call) => (call as { id: string }).id)).size).toBe(3);
  });

  it("whose ids are repeated in a reply get others", () => {
    const same = { functionCall: { id: "1", name: "f", args: { x: 1 } } };
    const [first, second] = callsOf(chunk([same, same], stop)) as { id: string }[];
    expect(first?.id).toBe("1");
    expect(second?.id).toMatch(/^call_[0-9a-f]{24}$/);
  });

  it("of replies without an id have other ids in each", () => {
    const { responseId: _, ...reply } = chunk([named("f")], stop) as Record<string, unknown>;
    const [one, other] = [callsOf(reply), callsOf(reply)] as { id: string }[][];
    expect(one?.[0]?.id).not.toBe(other?.[0]?.id);
  });

  it("whose name and arguments arrive in separate parts are one call", () => {
    const name = { functionCall: { name: "f", args: {} } };
    const args = { functionCall: { args: { x: 1 } } };
    const joined = [{ name: "f", input: '{"x":1}' }];
    expect(callsOf(chunk([name, args], stop))).toMatchObject(joined);
    expect(callsOf(chunk([name]), chunk([args]), chunk([], stop))).toMatchObject(joined);
    expect(callsOf(chunk([name]), chunk([{ functionCall: {} }]), chunk([], stop))).toMatchObject([
      { name: "f", input: "{}" },
    ]);
  });

  it("are found beside members that are there but empty", () => {
    const empty = { text: "", inlineData: {}, executableCode: {} };
    const part = { ...empty, functionCall: { name: "f", args: { x: 1 } } };
    expect(callsOf(chunk([empty, part, { functionCall: {} }], stop))).toMatchObject([
      { name: "f", input: '{"x":1}' },
    ]);
    expect(kindsOf(whole(chunk([empty, {}, { functionCall: {} }], stop)))).toEqual([]);
  });
});

describe("usage that chunks repeat", () => {
  const first = {
    promptTokenCount: 10,
    candidatesTokenCount: 50,
    thoughtsTokenCount: 20,
    cachedContentTokenCount: 4,
    totalTokenCount: 80,
  };
  const total = { inputTokens: 10, outputTokens: 70, reasoningTokens: 20, cachedInputTokens: 4 };

  it.each<[string, object]>([
    ["has no counts", {}],
    ["has only the input", { promptTokenCount: 10 }],
    ["has counts of 0", { promptTokenCount: 10, candidatesTokenCount: 0, totalTokenCount: 10 }],
    ["has no input", { candidatesTokenCount: 50 }],
    ["has only zeros", { promptTokenCount: 0, candidatesTokenCount: 0, thoughtsTokenCount: 0 }],
  ])("never falls if a later chunk %s", (_what, usage) => {
    const events = streamed(
      sse(chunk([{ text: "A" }], { usage: first }), chunk([], { finish: "STOP", usage })),
    );
    expect(endOf(events)).toMatchObject({ usage: total });
  });

  it("counts thoughts that only the total has", () => {
    const usage = { promptTokenCount: 20, candidatesTokenCount: 198, totalTokenCount: 623 };
    expect(whole(chunk([], { finish: "STOP", usage })).usage).toMatchObject({
      inputTokens: 20,
      outputTokens: 603,
      reasoningTokens: 405,
    });
    const told = { ...usage, thoughtsTokenCount: 405 };
    expect(whole(chunk([], { finish: "STOP", usage: told })).usage).toMatchObject({
      outputTokens: 603,
      reasoningTokens: 405,
    });
    // Some leave what tools brought in out of the total.
    const tools = { ...told, toolUsePromptTokenCount: 9 };
    expect(whole(chunk([], { finish: "STOP", usage: tools })).usage).toMatchObject({
      inputTokens: 29,
      outputTokens: 603,
    });
  });

  it("has searches that are reported behind the counts", () => {
    const candidate = { finishReason: "STOP", groundingMetadata: { webSearchQueries: ["q"] } };
    const events = streamed(sse(chunk([{ text: "A" }]), { candidates: [candidate] }));
    expect(endOf(events)).toMatchObject({ usage: { inputTokens: 9, webSearches: 1 } });
  });
});
