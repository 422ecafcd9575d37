/**
 * Text that a vendor sends after its usage is not in that usage: each relay says how much it is.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chatCompletions } from "../../../src/dialect/chat-completions/dialect.ts";
import { messages } from "../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../src/dialect/responses/dialect.ts";
import { NativeEvents } from "../../../src/native/reply-stream.ts";
import { DashscopeMeter } from "../../../src/provider/dashscope/meter.ts";
import { GeminiMeter } from "../../../src/provider/gemini/meter.ts";
import { FalTextMeter } from "../../../src/provider/fal/meter.ts";
import type { NativeMeter } from "../../../src/provider/native.ts";
import { cuts, event, optionsOf } from "./relaying.ts";

const data = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;
const native = (meter: NativeMeter): NativeEvents => new NativeEvents({ meter, addresses: [] });
const options = optionsOf({ model: "public" });

const styles = [
  {
    style: "chat completions",
    text: (content: string) =>
      data({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
    usage: () => data({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3 } }),
    open: () => chatCompletions.relayStream(options),
  },
  {
    style: "messages",
    text: (text: string) =>
      event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
    usage: () =>
      event({ type: "message_delta", delta: {}, usage: { input_tokens: 9, output_tokens: 3 } }),
    open: () => messages.relayStream(options),
  },
  {
    style: "responses",
    text: (delta: string) =>
      event({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta }),
    usage: () =>
      event({
        type: "response.in_progress",
        response: { output: [], usage: { input_tokens: 9, output_tokens: 3 } },
      }),
    open: () => responses.relayStream(options),
  },
  {
    style: "the native API of Gemini",
    text: (text: string) => data({ candidates: [{ content: { parts: [{ text }] } }] }),
    usage: () =>
      data({ candidates: [], usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3 } }),
    open: () => native(new GeminiMeter()),
  },
  {
    style: "the native API of DashScope",
    text: (content: string) => data({ output: { choices: [{ message: { content } }] } }),
    usage: () => data({ output: { choices: [] }, usage: { input_tokens: 9, output_tokens: 3 } }),
    open: () => native(new DashscopeMeter(true)),
  },
  {
    style: "the native API of fal",
    text: (output: string) => data({ output: `${output};`, partial: true }),
    usage: () => data({ usage: { prompt_tokens: 9, completion_tokens: 3 }, partial: true }),
    open: () => native(new FalTextMeter()),
  },
];

const words = fc.array(fc.stringMatching(/^[a-z]{1,9}$/), { maxLength: 6 });

describe.each(styles)("a stream of $style", ({ text, usage, open }) => {
  it("does not count the text after its last usage, however it is cut", () => {
    fc.assert(
      fc.property(words, words, cuts, (before, after, places) => {
        const bytes = Buffer.from(
          [...before.map(text), usage(), ...after.map(text)].join(""),
          "utf8",
        );
        const counted = open();
        counted.push([Buffer.from([...before.map(text), usage()].join(""))]);
        const stream = open();
        let start = 0;
        const sorted = places.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b);
        for (const end of [...sorted, bytes.length]) {
          stream.push([Buffer.from(bytes.subarray(start, end))]);
          start = end;
        }
        expect(stream.usage).toMatchObject({ inputTokens: 9, outputTokens: 3 });
        expect(counted.uncountedTextBytes).toBe(0);
        expect(stream.uncountedTextBytes).toBe(stream.textBytes - counted.textBytes);
      }),
    );
  });

  it("counts all of its text with a last usage, and leaves nothing to count without one", () => {
    const stream = open();
    stream.push([Buffer.from(text("one"))]);
    expect(stream.uncountedTextBytes).toBe(0);
    stream.push([Buffer.from(usage() + text("two") + text("three") + usage())]);
    expect(stream.uncountedTextBytes).toBe(0);
  });
});
