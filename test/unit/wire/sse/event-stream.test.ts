/** Events of a stream, however its bytes are cut and its lines end. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { eventBytesMax } from "../../../../src/core/limits.ts";
import {
  EventDataReader,
  EventSplitter,
  EventTooLongError,
  missingEnd,
} from "../../../../src/wire/sse/event-stream.ts";

/** A line of an event; some are so long that the event is held. */
const line = fc.oneof(
  fc.string({ maxLength: 20 }).map((text) => `data: ${text.replaceAll(/[\r\n]/g, "")}`),
  fc.integer({ min: 8_000, max: 40_000 }).map((length) => `data: ${"x".repeat(length)}`),
  fc.constantFrom(": comment", "event: x", "data:", "id"),
);
const lineEnd = fc.constantFrom("\n", "\r\n", "\r");
const event = fc.array(fc.tuple(line, lineEnd), { minLength: 1, maxLength: 4 }).chain((lines) =>
  lineEnd
    // A CR and the LF of the empty line behind it would be one end.
    .filter((end) => !(end === "\n" && lines.at(-1)?.[1] === "\r"))
    .map((end) => lines.map(([text, own]) => text + own).join("") + end),
);

/** The data of the events of a text that is whole, in the plain words of the standard. */
function dataOf(text: string): string[] {
  const found: string[] = [];
  let data: string[] = [];
  for (const each of text.split(/\r\n|\n|\r/)) {
    if (each.startsWith("data:")) data.push(each.slice(each[5] === " " ? 6 : 5));
    if (each !== "" || data.length === 0) continue;
    found.push(data.join("\n"));
    data = [];
  }
  return found;
}

test("every event is found once and whole, and all bytes come out", () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 5 }),
      fc.array(fc.nat(100_000), { maxLength: 20 }),
      (events, cuts) => {
        const whole = Buffer.from(`${events.join("")}data: last\n\n`, "latin1");
        const places = [...new Set([0, ...cuts.map((cut) => cut % whole.length), whole.length])];
        const sorted = places.toSorted((a, b) => a - b);
        const pieces = sorted.slice(1).map((end, at) => whole.subarray(sorted[at], end));
        const splitter = new EventSplitter(eventBytesMax);
        const passed = pieces.map((piece) => {
          const source = splitter.begin([piece]);
          let at = 0;
          for (
            let place = splitter.next(at);
            place && at < source.length;
            place = splitter.next(at)
          )
            at = place.end;
          const out = Buffer.from(source.subarray(0, at));
          splitter.finish(at, out);
          return out;
        });
        expect(Buffer.concat(passed).equals(whole)).toBe(true);
        expect(splitter.restBytes).toBe(0);
        const told: string[] = [];
        const reader = new EventDataReader();
        for (const piece of pieces) reader.read([piece], (data) => told.push(data));
        expect(told).toEqual(dataOf(whole.toString("latin1")));
      },
    ),
    { numRuns: 300 },
  );
});

test("an event that comes byte by byte is found with its last byte", () => {
  const whole = Buffer.from(`data: ${"x".repeat(20_000)}\r\ndata: y\r\n\r\n`);
  const told: { readonly at: number; readonly length: number }[] = [];
  const reader = new EventDataReader();
  const restBytes = Array.from(whole, (_byte, at) => {
    const rest = reader.unfinished.restBytes;
    reader.read([whole.subarray(at, at + 1)], ({ length }) => told.push({ at, length }));
    return rest;
  });
  expect(restBytes).toEqual(Array.from(whole, (_byte, at) => at));
  expect(told).toEqual([{ at: whole.length - 1, length: 20_002 }]);
});

test("an event that never ends is refused at the limit, not kept", () => {
  const reader = new EventDataReader();
  const piece = Buffer.from(`data: ${"x".repeat(1024 * 1024)}\n`);
  const feed = (): void => {
    for (let fed = 0; fed <= eventBytesMax; fed += piece.length) reader.read([piece], () => {});
  };
  expect(feed).toThrow(EventTooLongError);
});

test("the first event with data is found without reading what comes behind it", () => {
  const pieces = [": hello\n\nevent: x\nda", "ta: one\n", "\ndata: two\n\nda"];
  const reader = new EventDataReader();
  expect(pieces.map((piece) => reader.readFirst([Buffer.from(piece)]))).toEqual([
    undefined,
    undefined,
    "one",
  ]);
});

test("one byte order mark before the first event is passed over, however the bytes are cut", () => {
  const bytes = Buffer.from("\uFEFFdata: first\n\n\uFEFFdata: none\n\ndata: \uFEFFlast\n\n");
  for (const size of [1, 2, 5, bytes.length]) {
    const reader = new EventDataReader();
    const data: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      reader.read([bytes.subarray(at, at + size)], (each) => data.push(each));
    }
    expect(data).toEqual(["first", "\uFEFFlast"]);
  }
});

test("an event behind a byte order mark may lack its empty line, or have two lines of data", () => {
  const rest = Buffer.from("\uFEFFdata: {\ndata: }");
  const reader = new EventDataReader();
  const data: string[] = [];
  reader.read([rest], (each) => data.push(each));
  const missing = missingEnd(reader.rest);
  reader.read(missing === undefined ? [] : [missing], (each) => data.push(each));
  expect(data).toEqual(["{\n}"]);
});
