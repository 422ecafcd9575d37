/**
 * Exact counts: those of the vendor's own tokenizer, for every text, in time that grows with its
 * length.
 */
import * as fc from "fast-check";
import { countTokens as cl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as o200k } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import { loadEncoding, wordCharsMax } from "../../../src/tokens/counted-text.ts";
import { forms, scripts } from "./corpus.ts";

const plain = { disallowedSpecial: new Set<string>() };

describe.each([
  ["o200k_base", o200k],
  ["cl100k_base", cl100k],
] as const)("%s", async (encoding, library) => {
  const count = await loadEncoding(encoding);
  const expected = (text: string): number => library(text, plain);

  it.each(Object.entries({ ...scripts, ...forms }))("counts %s as the library does", (_, text) => {
    const words = text.match(/\S+|\s+/gu) ?? [];
    // A cut word may take one token more.
    const cuts = words.reduce((sum, word) => sum + Math.floor(word.length / wordCharsMax), 0);
    expect(count(text)).toBeGreaterThanOrEqual(expected(text));
    expect(count(text)).toBeLessThanOrEqual(expected(text) + cuts);
  });

  it("counts any short text as the library does", () => {
    const unit = fc.oneof(
      fc.constantFrom(...Array.from("aeint ST.,'\n\r\t01-/é中あ한ع👍"), "'ll", "  "),
      // The library loses a byte order mark.
      fc.string({ unit: "grapheme", maxLength: 1 }).filter((sign) => !sign.includes("\ufeff")),
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 60 }), (units) => {
        const text = units.join("");
        expect(count(text)).toBe(expected(text));
      }),
      { numRuns: 300 },
    );
  });

  it("counts control words as text", () => {
    for (const word of ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>"]) {
      expect(count(word)).toBeGreaterThan(1);
    }
  });

  it("the tokenizer counts lone surrogates", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat({ max: 5 }), (text, cut) => {
        expect(count(text.slice(cut))).toBeGreaterThanOrEqual(0);
        expect(count(`\ud800${text}\udc00`)).toBeGreaterThan(0);
      }),
      { numRuns: 100 },
    );
  });

  // With each of these the library takes time that grows with the square of the length.
  it.each([
    ["one letter", "a"],
    ["spaces", " "],
    ["line ends", "\n"],
    ["signs", "-"],
    ["accents", "\u0301"],
    ["Han", "中"],
    ["halves of pairs", "\ud800"],
    ["letters at random", "xqzjkvwy"],
  ])("counts a long run of %s piece by piece", (_, unit) => {
    const piece = unit.repeat(Math.ceil(16_384 / unit.length));
    const once = count(piece);
    expect(count(piece.repeat(6))).toBeLessThanOrEqual(6 * once + 6);
    expect(count(piece.repeat(6))).toBeGreaterThanOrEqual(6 * once - 12);
  });
});
