/**
 * Events that are alike but for a text, and for numbers behind it, pass without being read one by
 * one.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import { textDialects } from "../../../../src/dialect/index.ts";
import { EventTemplate } from "../../../../src/wire/json/event-template.ts";

/** Also with what ends no text: escaped quotes, and backslashes before quotes that do. */
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 90 }),
  fc
    .array(fc.constantFrom('"', "\\", "x".repeat(70), "é", '"}'), { maxLength: 5 })
    .map((parts) => parts.join("")),
);

interface Said {
  readonly text: string;
  readonly count: number;
}

const said: fc.Arbitrary<Said> = fc.record({ text, count: fc.nat() });

function eventOf({ text: content, count }: Said, model = "vendor"): string {
  return `data: ${JSON.stringify({ id: 1, content, model, usage: { a: count, b: 7 } })}\n\n`;
}

/** The template of one event. */
function templateOf(first: Said, outModel?: string): EventTemplate {
  const event = Buffer.from(eventOf(first));
  const start = event.indexOf('"content":"') + 11;
  const countsStart = event.indexOf("{", event.indexOf('"usage":'));
  const out = Buffer.from(eventOf(first, outModel));
  return new EventTemplate({
    event,
    text: { start, end: start + written(first.text) },
    counts: { start: countsStart, end: event.lastIndexOf("}") },
    ...(outModel !== undefined && { out: { event: out, textStart: start } }),
  });
}

/** Events whose counts grow from one to the next. */
function growing(first: Said, all: readonly Said[]): Said[] {
  const counts = all.map(({ count }) => Math.max(count, first.count)).toSorted((a, b) => a - b);
  return all.map((each, at) => ({ ...each, count: counts[at] ?? 0 }));
}

/** Returns the bytes of a text in JSON. */
function written(content: string): number {
  return Buffer.byteLength(JSON.stringify(content)) - 2;
}

describe("a template", () => {
  it("a template passes all events of its form, returns their text and the last counts, and nothing after them", () => {
    fc.assert(
      fc.property(said, fc.array(said), fc.nat(9), text, (first, all, before, other) => {
        const events = growing(first, all);
        const alike = events.map((each) => eventOf(each)).join("");
        const stranger = `data: ${JSON.stringify({ id: 2, content: other })}\n\n`;
        const bytes = Buffer.from(`${"x".repeat(before)}${alike}${stranger}`);
        const run = templateOf(first).pass(bytes, before);
        expect(run.end).toBe(before + Buffer.byteLength(alike));
        expect(run.textBytes).toBe(events.reduce((sum, each) => sum + written(each.text), 0));
        expect(run.out).toBeUndefined();
        const last = events.at(-1);
        if (last === undefined) return;
        const counts = bytes.toString("utf8", run.countsStart, run.countsEnd);
        expect(JSON.parse(counts)).toEqual({ a: last.count, b: 7 });
      }),
    );
  });

  it("a template takes no event whose counts are smaller than those before it", () => {
    const [first, more, less] = [9, 120, 90].map((count) => eventOf({ text: "x", count }));
    const template = templateOf({ text: "a", count: 9 });
    const bytes = Buffer.from(`${first}${more}${less}`);
    const end = template.pass(bytes, 0).end;
    expect(bytes.toString("utf8", end)).toBe(less);
    // In a later pass too.
    expect(template.pass(bytes, end).end).toBe(end);
  });

  it("a template takes no event for one of its form that differs in a byte elsewhere", () => {
    fc.assert(
      fc.property(
        said,
        said,
        fc.nat(),
        fc.integer({ min: 0, max: 255 }),
        (first, next, at, byte) => {
          const event = Buffer.from(eventOf(next));
          const start = event.indexOf('"content":"') + 11;
          const end = start + written(next.text);
          const place = at % event.length;
          fc.pre(event[place] !== byte && (place < start || place > end));
          const isDigit = (each: number | undefined) =>
            each !== undefined && each >= 48 && each <= 57;
          fc.pre(!(isDigit(byte) || isDigit(event[place])));
          event[place] = byte;
          expect(templateOf(first).pass(event, 0).end).toBe(0);
        },
      ),
    );
  });

  it("a template takes no event that is not all there", () => {
    fc.assert(
      fc.property(said, said, fc.nat(), (first, next, at) => {
        const whole = Buffer.from(eventOf(next));
        const { length } = whole;
        expect(templateOf(first).pass(whole.subarray(0, at % length), 0).end).toBe(0);
      }),
    );
  });
});

describe.each([
  [
    "chat completions",
    Dialect.CHAT_COMPLETIONS,
    (content: string, model: string) =>
      `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content } }], model })}\n\n`,
  ],
  [
    "messages",
    Dialect.MESSAGES,
    (part: string) =>
      `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: part } })}\n\n`,
  ],
] as const)("a stream of %s", (_, dialect, write) => {
  it("comes out the same, with its text counted, in whatever pieces it arrives", () => {
    const style = textDialects.get(dialect);
    fc.assert(
      fc.property(
        fc.array(text, { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1 }),
        (texts, sizes) => {
          const source = Buffer.from(texts.map((each) => write(each, "vendor")).join(""));
          const relay = style?.relayStream({ publicModel: "ours", hideUsage: true, choices: 1 });
          const out: Buffer[] = [];
          for (let at = 0, read = 0; at < source.length; read++) {
            const end = at + (sizes[read % sizes.length] ?? 1);
            out.push(Buffer.from(relay?.push([source.subarray(at, end)]) ?? []));
            at = end;
          }
          const expected = texts.map((each) => write(each, "ours")).join("");
          expect(Buffer.concat(out).toString()).toBe(expected);
          expect(relay?.textBytes).toBe(texts.reduce((sum, each) => sum + written(each), 0));
        },
      ),
    );
  });
});
