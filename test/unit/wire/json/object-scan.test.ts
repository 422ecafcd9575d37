import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isWholeObject, ObjectScan } from "../../../../src/wire/json/scan.ts";

/** Names without escapes: those that vendors use, and all that the scan compares. */
const names = fc.string({ unit: "grapheme-ascii" }).filter((name) => !/["\\]/.test(name));
const texts = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc
    .array(fc.constantFrom('"', "\\", "x".repeat(70), "é", ",}"), { maxLength: 9 })
    .map((parts) => parts.join("")),
);
const objects = fc.dictionary(names, fc.oneof(fc.jsonValue(), texts, fc.array(fc.jsonValue())));

describe("a scan of an object in bytes", () => {
  it("a scan of an object in bytes finds what JSON.parse finds", () => {
    fc.assert(
      fc.property(objects, fc.constantFrom(0, 1), fc.string(), (object, indent, before) => {
        const text = JSON.stringify(object, null, indent);
        const bytes = Buffer.from(`${before}${text}, "after": 1}`);
        const start = Buffer.byteLength(before);
        const scan = new ObjectScan().scan(bytes, start, start + Buffer.byteLength(text));
        expect(scan.size).toBe(Object.keys(object).length);
        for (const [name, value] of Object.entries(object)) {
          expect(scan.value(name)).toEqual(JSON.parse(JSON.stringify(value)));
          if (typeof value === "string") {
            expect(scan.stringBytes(name)).toBe(Buffer.byteLength(JSON.stringify(value)) - 2);
          }
          const elements = scan
            .elements(name)
            .map((each) => JSON.parse(bytes.toString("utf8", each.start, each.end)));
          expect(elements).toEqual(Array.isArray(value) ? JSON.parse(JSON.stringify(value)) : []);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("a scan of an object in bytes takes the last of two members, as JSON.parse does", () => {
    const bytes = Buffer.from('{"a":1,"b":2,"a":3}');
    expect(new ObjectScan().scan(bytes, 0, bytes.length).value("a")).toBe(3);
  });

  it("a scan of an object in bytes is harmless on anything else", () => {
    fc.assert(
      fc.property(fc.string(), objects, fc.nat(), (noise, object, at) => {
        const text = JSON.stringify(object);
        const cut = at % (text.length + 1);
        const bytes = Buffer.from(`${text.slice(0, cut)}${noise}${text.slice(cut)}`);
        const scan = new ObjectScan().scan(bytes, 0, bytes.length);
        for (const name of Object.keys(object)) {
          const member = scan.find(name);
          expect(scan.end(member)).toBeLessThanOrEqual(bytes.length);
          expect(scan.stringBytes(name)).toBeGreaterThanOrEqual(0);
          scan.value(name);
          scan.elements(name);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe("a body is one whole object", () => {
  it("where it is written whole, with or without white space around it", () => {
    fc.assert(
      fc.property(objects, fc.constantFrom(0, 1), (object, indent) => {
        const text = JSON.stringify(object, null, indent);
        expect(isWholeObject(Buffer.from(text))).toBe(true);
        expect(isWholeObject(Buffer.from(` \n${text}\r\n`))).toBe(true);
      }),
    );
  });

  it("and not where it was cut anywhere, goes on behind its end, or is no object", () => {
    fc.assert(
      fc.property(objects, fc.nat(), (object, at) => {
        const bytes = Buffer.from(JSON.stringify(object));
        expect(isWholeObject(bytes.subarray(0, at % bytes.length))).toBe(false);
        expect(isWholeObject(Buffer.concat([bytes, bytes.subarray(-1)]))).toBe(false);
        expect(isWholeObject(Buffer.from(`[${bytes.toString()}]`))).toBe(false);
      }),
    );
  });
});
