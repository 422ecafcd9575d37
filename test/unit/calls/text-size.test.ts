/** Size of a body's text, for estimates of its tokens. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { textSize } from "../../../src/calls/adapters/body-length.ts";

function size(value: unknown): { textBytes: number; files: number } {
  const { textBytes, files } = textSize(Buffer.from(JSON.stringify(value)));
  return { textBytes, files };
}

describe("the size of a body", () => {
  it("the size of a body is what its strings have in UTF-8", () => {
    expect(size({ a: "abc", b: ["é", { c: "€" }], d: 5, e: null, f: true })).toEqual({
      textBytes: 8,
      files: 0,
    });
  });

  it("the size of a body counts the names in tools too: models read them", () => {
    const tools = [{ name: "f", parameters: { properties: { city: {} } } }];
    expect(size({ tools }).textBytes).toBe(JSON.stringify(tools).length);
  });

  it.each([
    { source: { type: "base64", media_type: "image/png", data: "AAAA".repeat(99) } },
    { image_url: `data:image/png;base64,${"AAAA".repeat(99)}` },
    { file: { file_data: `data:application/pdf;base64,${"AAAA".repeat(99)}` } },
    { input_audio: { format: "wav", data: "AAAA".repeat(99) } },
  ])("the size of a body counts a file once, not its base64: %j", (part) => {
    const { textBytes, files } = size({ content: [part, part] });
    expect(files).toBe(2);
    expect(textBytes).toBeLessThan(60);
  });

  it("the size of a body is never more than the body has, and never fails", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (body) => {
        const { textBytes } = size(body);
        expect(textBytes).toBeLessThanOrEqual(Buffer.byteLength(JSON.stringify(body)));
      }),
    );
  });
});
