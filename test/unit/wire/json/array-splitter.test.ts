/** The objects of an array that grows, however its bytes are cut. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { EventTooLongError } from "../../../../src/wire/sse/event-stream.ts";
import { ArraySplitter } from "../../../../src/wire/json/array-splitter.ts";

test("every object is returned once and whole, and all bytes come out", () => {
  const member = fc.oneof(fc.string(), fc.nat(), fc.constant({ a: [{ "}": "{" }] }));
  const object = fc.dictionary(fc.string(), member);
  fc.assert(
    fc.property(
      fc.array(object, { maxLength: 5 }),
      fc.array(fc.nat(300), { maxLength: 10 }),
      fc.constantFrom("", " ", ",\r\n"),
      (objects, cuts, gap) => {
        const between = gap === "" ? "," : gap.includes(",") ? gap : `${gap},${gap}`;
        const whole = Buffer.from(`[${objects.map((each) => JSON.stringify(each)).join(between)}]`);
        const places = [...new Set([0, ...cuts.filter((cut) => cut < whole.length), whole.length])];
        const sorted = places.toSorted((a, b) => a - b);
        const told: unknown[] = [];
        const splitter = new ArraySplitter(10_000, (bytes, start, end) =>
          told.push(JSON.parse(bytes.toString("utf8", start, end))),
        );
        const pieces = sorted.slice(1).map((end, at) => whole.subarray(sorted[at], end));
        const passed = pieces.map((piece) => Buffer.from(splitter.push(piece)));
        expect(told).toEqual(objects.map((each) => JSON.parse(JSON.stringify(each)) as unknown));
        expect(Buffer.concat(passed).equals(whole)).toBe(true);
        expect(splitter.restBytes).toBe(0);
      },
    ),
  );
});

test("an object that never ends is refused, not kept", () => {
  const splitter = new ArraySplitter(100, () => {});
  expect(() => splitter.push(Buffer.from(`[{"a":"${"x".repeat(200)}`))).toThrow(EventTooLongError);
});
