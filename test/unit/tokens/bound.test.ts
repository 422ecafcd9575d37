/** R-MON-3: what is held for a request is more than it turns out to be. */
import * as fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { type CountText, loadEncoding } from "../../../src/tokens/counted-text.ts";
import type { Encoding } from "../../../src/tokens/family.ts";
import { textWeight, wholeTokens } from "../../../src/wire/json/text-weight.ts";
import { forms, scripts } from "./corpus.ts";

const counts = new Map<Encoding, CountText>();

beforeAll(async () => {
  for (const encoding of ["o200k_base", "cl100k_base"] as const) {
    counts.set(encoding, await loadEncoding(encoding));
  }
});

function most(text: string): number {
  return Math.max(...[...counts.values()].map((count) => count(text)));
}

function bound(text: string): number {
  return wholeTokens(textWeight(Buffer.from(text)));
}

describe("the byte bound", () => {
  it.each(Object.entries({ ...scripts, ...forms }))("the byte bound covers %s", (_, text) => {
    expect(bound(text)).toBeGreaterThanOrEqual(most(text));
  });

  it("the byte bound covers any mixture of scripts and forms", () => {
    const texts = Object.values({ ...scripts, ...forms });
    const part = fc
      .tuple(fc.constantFrom(...texts), fc.nat(), fc.nat({ max: 200 }))
      .map(([text, from, size]) => {
        const points = Array.from(text);
        const start = from % points.length;
        return points.slice(start, start + size).join("");
      });
    const mixture = fc.array(part, { maxLength: 12 }).map((parts) => parts.join("\n"));
    fc.assert(
      // A part may begin in the middle of what is one token, and a short one may have more tokens
      // for its bytes than its script: three more for each, which the bound of a request has for
      // each message.
      fc.property(mixture, (text) => {
        expect(bound(text) + 3 * text.split("\n").length).toBeGreaterThanOrEqual(most(text));
      }),
      { numRuns: 100 },
    );
  });

  it("the byte bound covers random digits, separators, capitals and four-byte characters", () => {
    const digits = fc.string({ unit: fc.constantFrom(...Array.from("0123456789,.-/")) });
    const capitals = fc.string({
      unit: fc.constantFrom(...Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    });
    const wide = fc.string({ unit: fc.integer({ min: 0x10000, max: 0x10ffff }).map(codePoint) });
    const indic = fc.string({ unit: fc.integer({ min: 0x800, max: 0x1fff }).map(codePoint) });
    fc.assert(
      fc.property(fc.oneof(digits, capitals, wide, indic), (text) => {
        expect(bound(text)).toBeGreaterThanOrEqual(most(text));
      }),
      { numRuns: 200 },
    );
  });

  it("the byte bound is at least half of the tokens of any text", () => {
    const any = fc.string({ unit: "binary", maxLength: 100 });
    const letters = fc.string({
      unit: fc.constantFrom(...Array.from("abcdefghijklmnopqrstuvwxyz ")),
    });
    fc.assert(
      fc.property(fc.oneof(any, letters), (text) => {
        // As it stands in a body: control characters are escaped there.
        expect(bound(JSON.stringify(text)) * 2).toBeGreaterThanOrEqual(most(text));
      }),
      { numRuns: 200 },
    );
  });

  it("the byte bound is below three times the tokens of English, code and Chinese", () => {
    for (const text of [scripts["English"], forms["code"], scripts["Chinese, simplified"]]) {
      expect(bound(text ?? "")).toBeLessThan(3 * most(text ?? ""));
    }
  });

  it("the byte bound is additive wherever a text is cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 99 }), fc.nat(), fc.nat(), (bytes, from, at) => {
        const whole = Buffer.from(bytes).subarray(from % (bytes.length + 1));
        const cut = at % (whole.length + 1);
        const parts = textWeight(whole, 0, cut) + textWeight(whole, cut);
        expect(parts).toBe(textWeight(whole));
      }),
    );
  });
});

function codePoint(code: number): string {
  return String.fromCodePoint(code);
}
