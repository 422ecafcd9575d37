/** Costs of Gemini's streams: taken at once or one by one, the figures are equal. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { GeminiMeter } from "../../../src/provider/gemini/meter.ts";

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom('say "text": "x"', "\\", '"usageMetadata": {', "a\r\n\r\nb", "", "é"),
);

const chunk = fc.record({
  texts: fc.oneof(fc.tuple(text), fc.array(text, { maxLength: 3 })),
  tokens: fc.option(fc.nat(10_000), { nil: undefined }),
  isPretty: fc.constant(false),
  end: fc.constantFrom({}, {}, {}, { finishReason: "STOP" }),
});

/** All that a stream came to, as the relay reads it. */
function streamed(events: readonly string[], canSkim: boolean): GeminiMeter {
  const meter = new GeminiMeter();
  const bytes = Buffer.from(events.map((event) => `data: ${event}\r\n\r\n`).join(""));
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf("\r\n\r\n", at);
    meter.read(bytes, at + "data: ".length, end);
    meter.learn(bytes, { start: at, end: end + 4 });
    at = canSkim ? meter.skim(bytes, end + 4) : end + 4;
  }
  return meter;
}

test("skimming and reading find the same texts and counts", () => {
  fc.assert(
    fc.property(fc.array(chunk, { minLength: 1, maxLength: 8 }), (chunks) => {
      const events = chunks.map(({ texts, tokens, isPretty, end }) => {
        const details = [{ modality: "TEXT", tokenCount: tokens }];
        const counts = { promptTokenCount: 7, candidatesTokenCount: tokens, details };
        const parts = texts.map((each) => ({ text: each }));
        const json = {
          candidates: [{ content: { parts, role: "model" }, index: 0, ...end }],
          ...(tokens !== undefined && { usageMetadata: counts }),
          modelVersion: "x",
        };
        return JSON.stringify(json, undefined, isPretty ? " " : undefined).replaceAll("\n", "");
      });
      const [skimmed, read] = [streamed(events, true), streamed(events, false)];
      expect(skimmed.textBytes).toBe(read.textBytes);
      expect(skimmed.usage).toEqual(read.usage);
      expect(skimmed.isDone).toBe(read.isDone);
    }),
    { numRuns: 500 },
  );
});

test("events that are alike are skimmed, up to the one that ends", () => {
  const event = (said: string, tokens: number, more = ""): string =>
    `data: {"candidates":[{"content":{"parts":[{"text":"${said}"}]}${more}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":${tokens}}}\r\n\r\n`;
  const [first, second] = [event("a", 1), event("bc", 2)];
  const bytes = Buffer.from(first + second + event("d", 3, ',"finishReason":"STOP"'));
  const meter = new GeminiMeter();
  meter.read(bytes, "data: ".length, first.length - 4);
  meter.learn(bytes, { start: 0, end: first.length });
  expect(meter.skim(bytes, first.length)).toBe(first.length + second.length);
  expect([meter.textBytes, meter.usage?.outputTokens]).toEqual([3, 2]);
});

test("nothing is skimmed that is like the last event up to its counts, but no whole event", () => {
  const event = (counts: string): string =>
    `data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"candidatesTokenCount":${counts}}}\r\n\r\n`;
  const first = event("1");
  for (const next of ["", "-1", "1.5", "1e3", '"1"', '1,"more":2']) {
    const bytes = Buffer.from(first + event(next));
    const meter = new GeminiMeter();
    meter.read(bytes, "data: ".length, first.length - 4);
    meter.learn(bytes, { start: 0, end: first.length });
    expect(meter.skim(bytes, first.length), next).toBe(first.length);
    expect(meter.skim(bytes.subarray(0, first.length * 2 - 3), 0), next).toBe(first.length);
  }
});
