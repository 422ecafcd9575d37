/** Pictures, documents and recordings are no text, wherever a vendor reads them; and only there. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FoundMedia } from "../../../../src/wire/json/media.ts";
import { scanObject } from "../../../../src/wire/json/outline.ts";
import { boundOf, measureRequest } from "../../../../src/tokens/request-tokens.ts";

const base64 = "iVBORw0KGgo/+".repeat(20);

function findMedia(body: Buffer): readonly FoundMedia[] {
  return scanObject(body).media;
}

function find(body: unknown): { kind: string; bytes: number | undefined; text: string }[] {
  const bytes = Buffer.from(JSON.stringify(body));
  return findMedia(bytes).map(({ kind, bytes: size, start, end }) => ({
    kind,
    bytes: size,
    text: bytes.toString("utf8", start, end).slice(0, 8),
  }));
}

const dataUrl = `data:image/png;base64,${base64}`;
const picture = { kind: "image", bytes: dataUrl.length, text: "data:ima" };
const inBase64 = { bytes: base64.length, text: "iVBORw0K" };

describe("finds", () => {
  const user = (part: unknown): unknown => ({ messages: [{ role: "user", content: [part] }] });

  it.each([
    ["a picture of chat", user({ type: "image_url", image_url: { url: dataUrl } }), picture],
    [
      "one by its address",
      user({ type: "image_url", image_url: { url: "https://example.com/a.png" } }),
      { kind: "image", bytes: undefined, text: "" },
    ],
    [
      "sound of chat",
      user({ type: "input_audio", input_audio: { data: base64, format: "wav" } }),
      { ...inBase64, kind: "audio" },
    ],
    [
      "a file of chat",
      user({ type: "file", file: { file_data: `data:application/pdf;base64,${base64}` } }),
      { kind: "document", bytes: base64.length + 28, text: "data:app" },
    ],
    [
      "a picture of messages",
      user({ type: "image", source: { type: "base64", media_type: "image/png", data: base64 } }),
      { ...inBase64, kind: "image" },
    ],
    [
      "one by its id",
      user({ type: "image", source: { type: "file", file_id: "file_1" } }),
      { kind: "image", bytes: undefined, text: "" },
    ],
    [
      "a document of messages, in a tool's result",
      user({
        type: "tool_result",
        content: [
          {
            type: "document",
            source: { data: base64, media_type: "application/pdf", type: "base64" },
          },
        ],
      }),
      { ...inBase64, kind: "document" },
    ],
    [
      "a picture of responses",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: dataUrl }] }] },
      picture,
    ],
    [
      "a picture that responses made",
      { input: [{ type: "image_generation_call", id: "ig_1", result: base64 }] },
      { ...inBase64, kind: "image" },
    ],
    [
      "sealed reasoning",
      { input: [{ type: "reasoning", encrypted_content: base64 }] },
      { ...inBase64, kind: "sealed" },
    ],
    [
      "a picture of gemini",
      { contents: [{ parts: [{ inlineData: { mimeType: "image/jpeg", data: base64 } }] }] },
      { ...inBase64, kind: "image" },
    ],
    [
      "a film of gemini by its address",
      {
        contents: [{ parts: [{ fileData: { mimeType: "video/mp4", fileUri: "https://a.b/c" } }] }],
      },
      { kind: "video", bytes: undefined, text: "" },
    ],
  ])("media is found: %s", (_, body, found) => {
    expect(find(body)).toEqual([found]);
    expect(find({ model: "m", ...(body as object), stream: true })).toEqual([found]);
  });

  it("one whose name is written in escapes", () => {
    const body = JSON.stringify(user({ type: "image_url", image_url: { url: dataUrl } }));
    const escaped = Buffer.from(body.replace('"image_url":{', '"image\\u005furl":{'));
    expect(findMedia(escaped)).toHaveLength(1);
  });
});

describe("takes for text", () => {
  const call = { role: "assistant", content: [{ type: "tool_use", name: "f", input: {} }] };

  it.each([
    ["a text that looks like one", { messages: [{ role: "user", content: dataUrl }] }],
    ["a text part", { messages: [{ content: [{ type: "text", text: dataUrl }] }] }],
    [
      "a tool's arguments",
      {
        messages: [
          { ...call, content: [{ type: "tool_use", input: { source: { data: base64 } } }] },
        ],
      },
    ],
    [
      "a tool's schema",
      { tools: [{ image_url: { url: dataUrl }, content: [{ image_url: dataUrl }] }] },
    ],
    [
      "a plain document",
      { messages: [{ content: [{ type: "document", source: { type: "text", data: base64 } }] }] },
    ],
    ["instructions", { instructions: dataUrl, system: dataUrl }],
    ["a text behind a picture's object", { messages: [{ content: [{ source: {} }, dataUrl] }] }],
    [
      "what stands deeper than parts do",
      JSON.parse(`${'{"content":['.repeat(40)}{"image_url":"${dataUrl}"}${"]}".repeat(40)}`),
    ],
  ])("text is not taken for media: %s", (_, body) => {
    expect(find(body)).toEqual([]);
  });
});

it("a text in a list behind a part with a seal is left alone", () => {
  const parts = [[{ type: "reasoning", encrypted_content: base64 }, dataUrl], dataUrl];
  expect(find({ input: [{ content: parts }] })).toEqual([{ ...inBase64, kind: "sealed" }]);
});

describe("a request's size", () => {
  it("a request's size does not grow with the size of a picture", () => {
    const size = (count: number): number =>
      measureRequest(
        Buffer.from(
          JSON.stringify({
            messages: [
              { content: [{ image_url: { url: `data:image/png;base64,${"A".repeat(count)}` } }] },
            ],
          }),
        ),
      ).bound;
    expect(size(1_000_000)).toEqual(size(4));
    expect(size(4)).toBeGreaterThan(16_400);
    expect(size(4)).toBeLessThan(16_500);
  });

  it("a request's size takes the picture's figure of the model where there is one", () => {
    const body = Buffer.from(
      JSON.stringify({ messages: [{ content: [{ image_url: { url: dataUrl } }] }] }),
    );
    expect(measureRequest(body, 48_200).bound - measureRequest(body, 5_000).bound).toBe(43_200);
  });

  it("a request's size never fails, never finds what is not there, and bounds its result", () => {
    const key = fc.constantFrom(
      "messages",
      "content",
      "source",
      "image_url",
      "data",
      "type",
      "input",
      "x",
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.string(),
        fc.constantFrom(dataUrl, "text", "base64", 1.5, true, null),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(key, tie("value"), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(key, value), fc.boolean(), (body, isIndented) => {
        const bytes = Buffer.from(JSON.stringify(body, null, isIndented ? 2 : 0));
        let at = 0;
        for (const { start, end } of findMedia(bytes)) {
          expect(start).toBeGreaterThanOrEqual(at);
          expect(end).toBeGreaterThanOrEqual(start);
          if (start < end) expect(bytes[start - 1]).toBe(0x22);
          at = end;
        }
        expect(at).toBeLessThan(bytes.length);
        const size = measureRequest(bytes);
        const { mediaTokens, mediaBytes } = size;
        expect(boundOf(size)).toBeGreaterThanOrEqual(mediaTokens);
        expect(mediaBytes).toBeLessThan(bytes.length);
      }),
      { numRuns: 500 },
    );
  });

  it("a request's size reads bytes that are no JSON without harm", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...Array.from('{}[]",:\\amesgcontentdt ')) }),
        (text) => {
          expect(measureRequest(Buffer.from(text)).bound).toBeGreaterThanOrEqual(0);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
