import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { scanObject } from "../../../../src/wire/json/outline.ts";
import { JsonLimitError, JsonScanError } from "../../../../src/wire/json/scan.ts";
import { textWeight } from "../../../../src/wire/json/text-weight.ts";

const depthMax = 64;

/** Returns the scanner's result in the terms of JSON.parse: the members' values, or a refusal. */
function scanned(text: string): Array<[string, unknown]> | "refused" {
  const bytes = Buffer.from(text);
  try {
    return scanObject(bytes, { depthMax }).members.map((member) => [
      member.key,
      JSON.parse(bytes.toString("utf8", member.valueStart, member.valueEnd)),
    ]);
  } catch (error) {
    if (error instanceof JsonScanError) return "refused";
    throw error;
  }
}

function parsed(text: string): Array<[string, unknown]> | "refused" {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? Object.entries(value) : "refused";
  } catch {
    return "refused";
  }
}

/** The number of objects, lists, names and texts in a value. */
function partsOf(value: unknown): number {
  if (typeof value === "string") return 1;
  if (typeof value !== "object" || value === null) return 0;
  const names = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, each) => sum + partsOf(each), 1 + names);
}

const byKey = (a: [string, unknown], b: [string, unknown]): number => (a[0] < b[0] ? -1 : 1);
const sorted = (result: Array<[string, unknown]> | "refused") =>
  result === "refused" ? result : result.toSorted(byKey);

describe("R-ERR-7: the scanner accepts exactly what JSON.parse accepts", () => {
  it("the scanner accepts valid objects, with the same values at the places it names", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 5 })),
        fc.constantFrom(undefined, 1, "\t"),
        (value, indent) => {
          const text = JSON.stringify(value, null, indent);
          expect(sorted(scanned(text))).toEqual(sorted(parsed(text)));
        },
      ),
      { numRuns: 500 },
    );
  });

  it("the scanner agrees with JSON.parse on texts with a random edit", () => {
    const edit = fc.record({
      at: fc.nat(400),
      drop: fc.nat(3),
      insert: fc.constantFrom(
        "",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "\\",
        "\\u12",
        "0",
        "-",
        "1e",
        "tru",
        "\u0000",
        " ",
        "é",
      ),
    });
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })),
        edit,
        (value, change) => {
          const whole = JSON.stringify(value);
          const at = change.at % (whole.length + 1);
          const text = whole.slice(0, at) + change.insert + whole.slice(at + change.drop);
          // Repeated members are reported twice, while JSON.parse keeps the last.
          const result = scanned(text);
          const unique = result === "refused" ? result : [...new Map(result)];
          expect(sorted(unique)).toEqual(sorted(parsed(text)));
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("R-ERR-7: long strings, which are skipped four bytes at a time", () => {
  const piece = fc.oneof(
    {
      weight: 8,
      arbitrary: fc
        .string({ minLength: 20, maxLength: 90 })
        .map((text) => JSON.stringify(text).slice(1, -1)),
    },
    {
      weight: 1,
      arbitrary: fc
        .string({ unit: "grapheme", maxLength: 9 })
        .map((text) => JSON.stringify(text).slice(1, -1)),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "\u0000",
        "\n",
        '"',
        "\\",
        '\\"',
        "\\\\",
        "\\u00e9",
        "é",
        "\u001f",
        "\u007f",
        "\u0080",
      ),
    },
  );

  it("are accepted exactly where JSON.parse accepts them, wherever they lie in memory", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 9 }), fc.nat(7), (pieces, offset) => {
        const text = `{"a":"${pieces.join("")}","b":1}`;
        const memory = Buffer.alloc(Buffer.byteLength(text) + offset + 8, 0x22);
        memory.write(text, offset);
        const bytes = memory.subarray(offset, offset + Buffer.byteLength(text));
        const result = parsed(text);
        if (result === "refused")
          expect(() => scanObject(bytes, { depthMax })).toThrow(JsonScanError);
        else
          expect(scanObject(bytes, { depthMax }).members.map((each) => each.key)).toEqual([
            "a",
            "b",
          ]);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("R-MON-3: the weight of a body's text", () => {
  it("the weight of a body's text is what its bytes weigh, wherever they lie in memory, and so is that of each picture", () => {
    const base64 = fc.base64String({ maxLength: 90 });
    const source = base64.map((data) => ({ type: "image", source: { type: "base64", data } }));
    const part = fc.oneof(source, fc.string({ unit: "grapheme", maxLength: 90 }), fc.jsonValue());
    const body = fc.record({ x: fc.jsonValue(), messages: fc.array(part, { maxLength: 6 }) });
    fc.assert(
      fc.property(body, fc.constantFrom(0, 2), fc.nat(7), (value, indent, offset) => {
        const text = JSON.stringify(value, null, indent);
        const memory = Buffer.alloc(Buffer.byteLength(text) + offset + 8, "é");
        memory.write(text, offset);
        const bytes = memory.subarray(offset, offset + Buffer.byteLength(text));
        const { weight, media } = scanObject(bytes, { depthMax });
        expect(weight).toBe(textWeight(bytes));
        for (const each of media) expect(each.weight).toBe(textWeight(bytes, each.start, each.end));
      }),
      { numRuns: 500 },
    );
  });
});

describe("R-ERR-7: limits", () => {
  const nested = (levels: number) => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;

  it("accepts 64 levels and refuses 65", () => {
    expect(scanned(nested(64))).not.toBe("refused");
    expect(() => scanObject(Buffer.from(nested(65)), { depthMax })).toThrow(/deeper than 64/);
  });

  it("accepts as many objects, lists, names and texts as allowed, and refuses one more", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const partsMax = partsOf({ value }) - 1;
        const bytes = Buffer.from(JSON.stringify({ value }));
        expect(scanObject(bytes, { partsMax }).members).toHaveLength(1);
        expect(() => scanObject(bytes, { partsMax: partsMax - 1 })).toThrow(JsonLimitError);
      }),
    );
  });

  it("counts numbers and words apart, and names the place of the first too many", () => {
    const text = '{"a":[1,true,false,null],"b":2}';
    const bytes = Buffer.from(text);
    expect(scanObject(bytes, { numbersMax: 5 }).members).toHaveLength(2);
    for (const [at, word] of ["1", "true", "false", "null", "2"].entries()) {
      const offset = text.indexOf(word);
      expect(() => scanObject(bytes, { numbersMax: at })).toThrow(
        expect.objectContaining({ offset }),
      );
    }
  });

  it("refuses a million levels without overflowing the stack", () => {
    expect(scanned(nested(1_000_000))).toBe("refused");
  });

  it("refuses bad UTF-8, a byte order mark, raw NUL, and values that are no object", () => {
    expect(() => scanObject(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]))).toThrow(/UTF-8/);
    for (const text of ["\ufeff{}", '{"a":"\u0000"}', "[]", "1", "null", '"a"', "", "{} {}"]) {
      expect(scanned(text), JSON.stringify(text)).toBe("refused");
    }
  });

  it("escaped names are decoded", () => {
    expect(scanned(String.raw`{"mod\u0065l":1}`)).toEqual([["model", 1]]);
  });
});
