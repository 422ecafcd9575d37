import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { MediaType, ToolType } from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  assistant,
  bodyOf,
  call,
  encode,
  type PartInit,
  result,
  sealed,
  system,
  text,
  type TurnInit,
  user,
} from "./generation.ts";

const contentsOf = (turns: TurnInit[], model?: string): unknown => bodyOf(turns, model)["contents"];

const modelParts = (parts: PartInit[], model?: string): unknown => {
  const contents = contentsOf([user(text("Go")), assistant(...parts)], model) as [
    unknown,
    { parts: unknown }?,
  ];
  return contents[1]?.parts;
};

const userParts = (...parts: PartInit[]): unknown =>
  (contentsOf([user(...parts)]) as [{ parts: unknown }])[0].parts;

const media = (value: object): PartInit => ({ kind: { case: "media", value } });

describe("turns", () => {
  it("become contents whose roles alternate, system messages of the beginning apart", () => {
    const turns = [
      system(text("Be kind.")),
      user(text("A")),
      user(text("B")),
      assistant(text("C")),
      system(text("Be brief.")),
      user(text("D")),
    ];
    expect(bodyOf(turns)).toEqual({
      systemInstruction: { parts: [{ text: "Be kind." }] },
      contents: [
        { role: "user", parts: [{ text: "A" }, { text: "B" }] },
        { role: "model", parts: [{ text: "C" }] },
        { role: "user", parts: [{ text: "Be brief." }, { text: "D" }] },
      ],
    });
  });

  it("leave empty texts out, which Gemini refuses", () => {
    expect(contentsOf([user(text("")), assistant(text("")), user(text("A"))])).toEqual([
      { role: "user", parts: [{ text: "A" }] },
    ]);
  });

  it("turns may be a system message alone: it is what to answer", () => {
    expect(bodyOf([system(text("Say hello."))])).toEqual({
      contents: [{ role: "user", parts: [{ text: "Say hello." }] }],
    });
  });

  it.each([
    ["empty messages", [user(text(""))], "the messages are empty"],
    ["a picture in a system message", [system(media({}))], "may only contain text"],
  ])("R-TXT-2: turns with %s are refused", (_what, turns, message) => {
    expect(() => bodyOf(turns)).toThrow(message);
  });

  it("R-TXT-2 names what it leaves out, each once", () => {
    const named = {
      ...user(text("A")),
      name: "Ann",
      extras: [{ name: "annotations", json: "[]" }],
    };
    const hinted: PartInit = { ...text("B"), cacheHint: {}, extras: [{ name: "foo", json: "1" }] };
    const turns = [named, user(hinted, hinted)];
    expect(encode({ conversation: { turns } }).dropped).toEqual([
      "turns.name",
      "annotations",
      "cache_hint",
      "foo",
    ]);
  });
});

describe("media", () => {
  it.each([
    [
      { type: MediaType.IMAGE, mimeType: "image/png", source: { case: "base64", value: "iVBO" } },
      { inlineData: { mimeType: "image/png", data: "iVBO" } },
    ],
    [
      { type: MediaType.DOCUMENT, filename: "a.CSV", source: { case: "base64", value: "YQ==" } },
      { inlineData: { mimeType: "text/csv", data: "YQ==" } },
    ],
    [
      { type: MediaType.DOCUMENT, source: { case: "base64", value: "JVBE" } },
      { inlineData: { mimeType: "application/pdf", data: "JVBE" } },
    ],
    [
      { type: MediaType.IMAGE, source: { case: "url", value: "https://a.example/x.jpeg?s=1" } },
      { fileData: { fileUri: "https://a.example/x.jpeg?s=1", mimeType: "image/jpeg" } },
    ],
    [
      { type: MediaType.IMAGE, source: { case: "url", value: "https://a.example/x" } },
      { fileData: { fileUri: "https://a.example/x" } },
    ],
    [{ type: MediaType.DOCUMENT, source: { case: "text", value: "Plain." } }, { text: "Plain." }],
  ])("media goes to Gemini in its form: %j", (value, part) => {
    expect(userParts(media(value))).toEqual([part]);
  });

  it.each([
    [{ type: MediaType.IMAGE, source: { case: "fileId", value: "file-1" } }, "a file id"],
    [{ type: MediaType.IMAGE, source: { case: "base64", value: "xx" } }, "no MIME type"],
    [{ type: MediaType.IMAGE }, "no content"],
  ])("R-TXT-2: media is refused: %j", (value, message) => {
    expect(() => userParts(media(value))).toThrow(message);
  });
});

describe("tools that were called", () => {
  it("keep their ids, and their answers stand together", () => {
    const turns = [
      user(text("Go")),
      assistant(text("So."), call("a", '{"x":1}'), call("b", "")),
      user(result("a", text("1"), text("2"))),
      user({ kind: { case: "toolResult", value: { toolCallId: "call_b", isError: true } } }),
      user(text("And?")),
    ];
    expect(contentsOf(turns)).toEqual([
      { role: "user", parts: [{ text: "Go" }] },
      {
        role: "model",
        parts: [
          { text: "So." },
          { functionCall: { id: "call_a", name: "a", args: { x: 1 } } },
          { functionCall: { id: "call_b", name: "b", args: {} } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "call_a", name: "a", response: { output: "1\n2" } } },
          { functionResponse: { id: "call_b", name: "b", response: { error: "" } } },
          { text: "And?" },
        ],
      },
    ]);
  });

  it.each([
    ['{"x": 1, "x', { input: '{"x": 1, "x' }],
    ["[1]", { input: "[1]" }],
    ["  ", {}],
  ])("show arguments that are no object as they were: %j", (input, args) => {
    const id = "call_a";
    expect(modelParts([call("a", input)])).toEqual([{ functionCall: { id, name: "a", args } }]);
  });

  it("show a free text as the function does that stands for its tool", () => {
    const value = { id: "c", name: "shell", type: ToolType.CUSTOM, input: "ls", namespace: "os" };
    expect(modelParts([{ kind: { case: "toolCall", value } }])).toEqual([
      { functionCall: { id: "c", name: "os__shell", args: { input: "ls" } } },
    ]);
  });

  it("show their pictures within the answer from Gemini 3 on, before that behind it", () => {
    const source = { case: "base64", value: "iVBO" } as const;
    const picture = media({ type: MediaType.IMAGE, mimeType: "image/png", source });
    const turns = [user(text("Go")), assistant(call("a")), user(result("a", text("See"), picture))];
    const inlineData = { mimeType: "image/png", data: "iVBO" };
    const answer = { id: "call_a", name: "a", response: { output: "See" } };
    const last = (model: string): unknown => (contentsOf(turns, model) as unknown[]).at(-1);
    expect(last("gemini-2.5-pro")).toEqual({
      role: "user",
      parts: [{ functionResponse: answer }, { inlineData }],
    });
    expect(last("gemini-3-flash-preview")).toEqual({
      role: "user",
      parts: [{ functionResponse: { ...answer, parts: [{ inlineData }] } }],
    });
  });

  it("R-TXT-2 refuses an answer that belongs to no call", () => {
    expect(() => userParts(result("a", text("1")))).toThrow(
      'the result for "call_a" has no earlier',
    );
  });

  it("R-TXT-2 refuses what only another style knows", () => {
    const value = { dialect: Dialect.MESSAGES, type: "hologram", json: "{}" };
    const part: PartInit = { kind: { case: "opaque", value } };
    expect(() => userParts(part)).toThrow('"hologram" is not supported');
  });
});

describe("R-TXT-3 reasoning goes back where it stood", () => {
  const functionCall = (name: string): object => ({ id: `call_${name}`, name, args: {} });

  it.each([
    [
      "on the first of parallel calls",
      [sealed("S1", "call"), call("a"), call("b")],
      [
        { functionCall: functionCall("a"), thoughtSignature: "S1" },
        { functionCall: functionCall("b") },
      ],
    ],
    [
      "on the call, with the thought that was shown",
      [sealed("S1", "call", "Hm."), call("a")],
      [
        { text: "Hm.", thought: true },
        { functionCall: functionCall("a"), thoughtSignature: "S1" },
      ],
    ],
    [
      "on each of the calls, where a client put the seals in front",
      [sealed("S1", "call"), sealed("S2", "call"), text("So."), call("a"), call("b")],
      [
        { text: "So." },
        { functionCall: functionCall("a"), thoughtSignature: "S1" },
        { functionCall: functionCall("b"), thoughtSignature: "S2" },
      ],
    ],
    [
      "on the thought itself",
      [sealed("S1", "thought", "Hm."), text("So.")],
      [{ text: "Hm.", thought: true, thoughtSignature: "S1" }, { text: "So." }],
    ],
    [
      "behind the text",
      [text("So."), sealed("S1", "content")],
      [{ text: "So." }, { text: "", thoughtSignature: "S1" }],
    ],
    [
      "on the picture",
      [
        media({ mimeType: "image/png", source: { case: "base64", value: "iV" } }),
        sealed("S1", "content"),
      ],
      [{ inlineData: { mimeType: "image/png", data: "iV" }, thoughtSignature: "S1" }],
    ],
    [
      "with an empty text where its call is gone",
      [sealed("S1", "call")],
      [{ text: "", thoughtSignature: "S1" }],
    ],
    [
      "as a thought where nobody sealed it",
      [{ kind: { case: "reasoning" as const, value: { summaries: ["A", "B"] } } }, text("So.")],
      [{ text: "A\n\nB", thought: true }, { text: "So." }],
    ],
  ])("R-TXT-3: a signature goes back %s", (_where, parts, expected) => {
    expect(modelParts(parts)).toEqual(expected);
  });

  it("is left out whole, and named, where another vendor sealed it", () => {
    const seal = { dialect: Dialect.MESSAGES, signature: "EqQB" };
    const foreign: PartInit = { kind: { case: "reasoning", value: { text: "Hm.", seal } } };
    const turns = [user(text("Go")), assistant(foreign, text("So."))];
    const { body, dropped } = encode({ conversation: { turns } });
    expect(body.toString()).not.toMatch(/EqQB|Hm\./);
    expect(dropped).toEqual(["turns.reasoning"]);
  });

  it("has Google's word for another model's calls, from Gemini 3 on", () => {
    const skip = { thoughtSignature: "skip_thought_signature_validator" };
    const plain = [{ functionCall: functionCall("a") }, { functionCall: functionCall("b") }];
    const parts = [call("a"), call("b")];
    expect(modelParts(parts, "gemini-2.5-pro")).toEqual(plain);
    expect(modelParts(parts, "gemini-3-pro-preview")).toEqual([{ ...plain[0], ...skip }, plain[1]]);
    expect(modelParts([sealed("S1", "call"), ...parts], "gemini-4-argon")).toEqual([
      { ...plain[0], thoughtSignature: "S1" },
      plain[1],
    ]);
  });
});
