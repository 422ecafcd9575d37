import { describe, expect, it } from "vitest";
import { inputItemsOf, outputItemsOf } from "../../../src/dialect/responses/items.ts";

describe("the items of whole bodies are found", () => {
  it("in requests, a string being one message", () => {
    expect(inputItemsOf(Buffer.from('{"input":"hi"}'))).toEqual([
      { type: "message", role: "user", content: "hi" },
    ]);
    expect(inputItemsOf(Buffer.from('{"input":[{"id":"x"}]}'))).toEqual([{ id: "x" }]);
    expect(inputItemsOf(Buffer.from("{}"))).toEqual([]);
    expect(() => inputItemsOf(Buffer.from('{"input":1}'))).toThrow(
      expect.objectContaining({ param: "input" }),
    );
  });

  it("in replies", () => {
    expect(outputItemsOf(Buffer.from('{"output":[{"id":"x"}]}'))).toEqual([{ id: "x" }]);
    expect(outputItemsOf(Buffer.from("{}"))).toEqual([]);
  });
});
