/**
 * Streams of events in a vendor's own form: what is passed on at once is what would be passed on
 * one by one.
 */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { NativeEvents } from "../../../src/native/reply-stream.ts";
import { GeminiMeter } from "../../../src/provider/gemini/meter.ts";

const from = "https://vendor.example";
const to = "http://127.0.0.1:8080/gemini";
const addresses = [{ from, to, members: new Set(["uri"]) }];

const text = fc.oneof(
  fc.constantFrom("", "é", 'a "quoted" word', "\\", `see ${from}/v1/x`, `"uri": "${from}/v1"`),
  fc.string({ maxLength: 80 }),
);

const event = fc
  .record({
    text,
    tokens: fc.nat(2_000),
    extra: fc.constantFrom({}, {}, {}, { uri: `${from}/v1/files/1` }),
    line: fc.constantFrom("", "", ": a comment\r\n", "event: x\r\n"),
    end: fc.constantFrom("\r\n\r\n", "\n\n"),
  })
  .map(({ text: said, tokens, extra, line, end }) => {
    const content = { parts: [{ text: said }], role: "model" };
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: tokens };
    return `${line}data: ${JSON.stringify({ candidates: [{ content, ...extra }], usageMetadata })}${end}`;
  });

function pieces(bytes: Buffer, cuts: readonly number[]): readonly Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b)];
  return places.map((start, at) => bytes.subarray(start, places[at + 1] ?? bytes.length));
}

/** The same without what makes it fast. */
class SlowMeter extends GeminiMeter {
  override skim(_bytes: Buffer, start: number): number {
    return start;
  }
}

function streamed(
  meter: GeminiMeter,
  reads: readonly (readonly Buffer[])[],
): { readonly bytes: string; readonly meter: GeminiMeter } {
  const stream = new NativeEvents({ meter, addresses });
  // Relayed bytes stay unchanged, whatever follows.
  const passed = [...reads.map((read) => stream.push(read)), stream.end()];
  return { bytes: Buffer.concat(passed).toString(), meter };
}

it("a native reply passes events on in any pieces as one by one: bytes, addresses, text and counts", () => {
  fc.assert(
    fc.property(
      fc.array(event, { minLength: 1, maxLength: 12 }),
      fc.nat(5),
      fc.array(fc.nat(20_000), { maxLength: 8 }),
      (events, times, cuts) => {
        const flood = events.flatMap((each) => Array.from({ length: times + 1 }, () => each));
        const bytes = Buffer.from(flood.join(""));
        const reads = pieces(bytes, cuts).map((piece) => pieces(piece, [5, 90, 200]));
        const fast = streamed(new GeminiMeter(), bytes.length === 0 ? [] : reads);
        const slow = streamed(new SlowMeter(), [[bytes]]);
        const uri = `"uri":"${from}`;
        expect(fast.bytes).toBe(bytes.toString().replaceAll(`,${uri}`, `,"uri":"${to}`));
        expect(slow.bytes).toBe(fast.bytes);
        expect(fast.meter.textBytes).toBe(slow.meter.textBytes);
        expect(fast.meter.usage).toEqual(slow.meter.usage);
      },
    ),
    { numRuns: 200 },
  );
});

it("a native reply keeps what it has passed on while more comes, also of reads of 64 KiB", () => {
  const events = Array.from({ length: 300 }, (_, at) => {
    const content = { parts: [{ text: `word ${at}` }] };
    const usageMetadata = { candidatesTokenCount: at };
    return Buffer.from(
      `data: ${JSON.stringify({ candidates: [{ content }], usageMetadata })}\r\n\r\n`,
    );
  });
  const stream = new NativeEvents({ meter: new GeminiMeter(), addresses });
  const reads = Array.from({ length: 4 }, () => stream.push(events));
  const whole = Buffer.concat(events).toString();
  for (const read of reads) expect(read.toString()).toBe(whole);
});

it.each([
  ["a whole event", "\n\n"],
  ["a last event without its empty line", ""],
])("a native reply counts %s whose data stands on several lines", (_what, end) => {
  const said = { candidates: [{ content: { parts: [{ text: "twelve bytes" }] } }] };
  const lines = JSON.stringify(said, null, 2).split("\n");
  const bytes = Buffer.from(`${lines.map((line) => `data: ${line}`).join("\n")}${end}`);
  const reply = streamed(new GeminiMeter(), [[bytes]]);
  expect(reply.bytes).toBe(bytes.toString());
  expect(reply.meter.textBytes).toBe(12);
});
