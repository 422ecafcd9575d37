/**
 * Relayed streams can be stopped between two events, whatever comes in one read: a hold covers no
 * more.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chatCompletions } from "../../../src/dialect/chat-completions/dialect.ts";
import { messages } from "../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../src/dialect/responses/dialect.ts";
import { NativeEvents } from "../../../src/native/reply-stream.ts";
import { GeminiMeter } from "../../../src/provider/gemini/meter.ts";
import { event, optionsOf } from "./relaying.ts";

const chat = (content: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
const delta = (text: string): string =>
  event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
const output = (text: string): string =>
  event({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta: text });
const candidate = (text: string): string =>
  `data: ${JSON.stringify({
    candidates: [{ content: { parts: [{ text }], role: "model" } }],
    usageMetadata: { promptTokenCount: 7 },
  })}\r\n\r\n`;

const options = optionsOf({ model: "public" });

describe.each([
  ["chat completions", chat, () => chatCompletions.relayStream(options)],
  ["messages", delta, () => messages.relayStream(options)],
  ["responses", output, () => responses.relayStream(options)],
  [
    "the native API of Gemini",
    candidate,
    () => new NativeEvents({ meter: new GeminiMeter(), addresses: [] }),
  ],
])("a stream of %s", (_style, write, open) => {
  it("stops before its text exceeds the limit, and goes on from there", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "binary-ascii", maxLength: 40 }), { maxLength: 60 }),
        fc.array(fc.nat()),
        // Any event fits.
        fc.integer({ min: 500, max: 800 }),
        (texts, cuts, limit) => {
          const bytes = Buffer.from(texts.map(write).join(""));
          const places = cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b);
          const stream = open();
          const passed: Buffer[] = [];
          let start = 0;
          for (const end of [...places, bytes.length]) {
            let read: Buffer | undefined = Buffer.from(bytes.subarray(start, end));
            while (read !== undefined) {
              const before = stream.textBytes;
              passed.push(stream.pushUntil?.([read], before + limit) ?? Buffer.of());
              expect(stream.textBytes - before).toBeLessThanOrEqual(limit);
              read = stream.unread;
            }
            start = end;
          }
          const whole = open();
          expect(Buffer.concat(passed)).toEqual(whole.push([bytes]));
          expect(stream.textBytes).toBe(whole.textBytes);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("leaves an event that may exceed the limit unread, with all that has come of it before", () => {
    const [first, long, last] = ["one", "x".repeat(2_000), "three"].map(write);
    const stream = open();
    const begun = Buffer.from(`${first}${long}`.slice(0, -1_000));
    expect(stream.pushUntil?.([begun], 1_000)).toEqual(open().push([Buffer.from(first ?? "")]));
    expect(stream.pushUntil?.([Buffer.from(`${long?.slice(-1_000)}${last}`)], 1_000)).toHaveLength(
      0,
    );
    expect(stream.unread?.toString()).toBe(`${long}${last}`);
    expect(stream.unfinished.restBytes).toBe(0);
    expect(stream.textBytes).toBe("one".length);
  });
});
