import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createSealing } from "../../../src/core/sealing.ts";

const key = Buffer.alloc(32, 1);
const sealing = createSealing(key, "reasoning");
const context = Buffer.from("context");

describe("sealing", () => {
  it("gives every text back as it was", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.uuid(), (text, account) => {
        const sealed = sealing.seal(account, context, text);
        expect(sealing.open(account, context, sealed)).toBe(text);
      }),
    );
  });

  it("opens for no other account, context, purpose or master key (R-TXT-3)", () => {
    const sealed = sealing.seal("a", context, "text");
    expect(sealing.open("b", context, sealed)).toBeUndefined();
    expect(sealing.open("a", Buffer.from("other"), sealed)).toBeUndefined();
    expect(createSealing(key, "other").open("a", context, sealed)).toBeUndefined();
    const otherKey = Buffer.alloc(32, 2);
    expect(createSealing(otherKey, "reasoning").open("a", context, sealed)).toBeUndefined();
  });

  it("notices every change of a bit, and every cut", () => {
    const sealed = sealing.seal("a", context, "text");
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(sealing.open("a", context, changed)).toBeUndefined();
    }
    for (let length = 0; length < sealed.length; length++) {
      expect(sealing.open("a", context, sealed.subarray(0, length))).toBeUndefined();
    }
  });

  it("never seals the same text the same way", () => {
    const one = sealing.seal("a", context, "text");
    expect(sealing.seal("a", context, "text").equals(one)).toBe(false);
  });
});
