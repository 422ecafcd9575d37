import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { messages as style } from "../../../../src/dialect/messages/dialect.ts";
import { UnreadableReplyError } from "../../../../src/wire/json/value.ts";
import { cuts, event, interludes, optionsOf, relayed, unknownMembers } from "../relaying.ts";

const usage = { input_tokens: 25, output_tokens: 1 };
const start = (model: unknown, extra: object = {}) =>
  event({
    type: "message_start",
    message: { id: "msg_1", type: "message", role: "assistant", model, content: [], ...extra },
  });
const delta = (value: object, extra: object = {}) =>
  event({ type: "content_block_delta", index: 0, delta: value, ...extra });
const text = (value: string) => delta({ type: "text_delta", text: value });
const ended = (counted: object) =>
  event({
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: counted,
  });
const stop = event({ type: "message_stop" });

/** Any event that a vendor may send, and its form after the model is renamed. */
const anyEvent = fc.oneof(
  interludes.map((each) => ({
    sent: each,
    got: each,
  })),
  fc
    .tuple(fc.constantFrom("vendor-model", 'odd "\\ é', null, undefined), unknownMembers)
    .map(([model, extra]) => ({
      sent: start(model, { ...extra, usage }),
      got: start(typeof model === "string" ? "public" : model, { ...extra, usage }),
    })),
  fc
    .tuple(
      fc.string({ unit: "grapheme" }),
      fc.constantFrom("text", "thinking", "partial_json", "signature"),
      unknownMembers,
    )
    .map(([value, name, extra]) => delta({ type: `${name}_delta`, [name]: value, ...extra }, extra))
    .map((each) => ({ sent: each, got: each })),
);

describe("R-TXT-1: a stream in the vendor's own dialect passes byte for byte", () => {
  it("a stream in the vendor's own dialect passes byte for byte, however it is cut and whatever it holds", () => {
    fc.assert(
      fc.property(
        fc.array(anyEvent),
        cuts,
        fc.constantFrom("\n", "\r\n", "\r"),
        (events, places, newline) => {
          // Another event must follow a lone CR before its end is certain.
          const all = `${events.map(({ sent }) => sent).join("")}${stop}: end\n\n`;
          const stream = all.replaceAll("\n", newline);
          const passed = relayed(style, stream, { cuts: places });
          expect(stream.startsWith(passed.text)).toBe(true);
          expect(stream.length - passed.text.length).toBeLessThanOrEqual(newline === "\r" ? 8 : 0);
          expect(passed.relay).toMatchObject({ done: true, failed: false });
        },
      ),
      { numRuns: 300 },
    );
  });

  it("a stream in the vendor's own dialect passes unchanged but for the model name", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 8 }), cuts, (events, places) => {
        const stream = events.map(({ sent }) => sent).join("");
        const { text: got } = relayed(style, stream, { model: "public", cuts: places });
        expect(got).toBe(events.map((each) => each.got).join(""));
      }),
      { numRuns: 500 },
    );
  });

  it("keeps the spelling of numbers, duplicate members, white space and several data lines", () => {
    const odd =
      'event:message_start\ndata: {"type" : "message_start",\nid: 1\ndata:"message": { "a":2.50, "a":1e400 , "model" : "vendor-model" ,\ndata: "é":12345678901234567890 } }\n\n';
    expect(relayed(style, text("a") + odd, { model: "public" }).text).toBe(
      text("a") + odd.replace("vendor-model", "public"),
    );
  });

  it("leaves what only looks like the model's name", () => {
    const stream =
      text('"model":"vendor-model"') +
      event({ type: "content_block_start", content_block: { model: "m" }, model: "m" }) +
      start("vendor-model", { deep: { model: "m" } });
    expect(relayed(style, stream, { model: "vendor-model" }).text).toBe(stream);
  });
});

describe("R-MON-8: what a stream consumed", () => {
  it("is what message_start says, overwritten by message_delta, where a null or nothing keeps it", () => {
    const begun = { ...usage, cache_read_input_tokens: 100, cache_creation_input_tokens: 7 };
    const { relay } = relayed(style, start("m", { usage: begun }) + text("hi"));
    // No output has come: what message_start says of it is only that some will.
    expect(relay.usage).toMatchObject({ inputTokens: 132, outputTokens: 0 });
    const counted = {
      output_tokens: 40,
      cache_read_input_tokens: null,
      output_tokens_details: { thinking_tokens: 30 },
    };
    const whole = relayed(style, start("m", { usage: begun }) + ended(counted) + stop);
    expect(whole.relay.usage).toMatchObject({
      inputTokens: 132,
      cachedInputTokens: 100,
      cacheWriteTokens: 7,
      outputTokens: 40,
      reasoningTokens: 30,
    });
  });

  it("may come at the end only", () => {
    const late = relayed(style, start("m") + ended({ input_tokens: 9, output_tokens: 4 }));
    expect(late.relay.usage).toMatchObject({ inputTokens: 9, outputTokens: 4 });
    const exact = { input_tokens: 9, output_tokens: 4, cache_read_input_tokens: 3 };
    const { relay } = relayed(style, start("m", { usage }) + ended(exact));
    expect(relay.usage).toMatchObject({ inputTokens: 12, cachedInputTokens: 3, outputTokens: 4 });
  });

  it("is not taken from impossible figures", () => {
    for (const bad of [
      { input_tokens: -1, output_tokens: 1 },
      { input_tokens: 5 },
      {},
      "x",
      null,
    ]) {
      expect(relayed(style, start("m", { usage: bad })).relay.usage).toBeUndefined();
    }
    const { relay } = relayed(style, start("m", { usage }) + ended({ output_tokens: "many" }));
    expect(relay.usage).toMatchObject({ inputTokens: 25, outputTokens: 0 });
  });

  it("is estimated by the text of deltas: text, thinking, tool arguments, no signatures", () => {
    const stream = [
      text("abcd"),
      delta({ type: "thinking_delta", thinking: "efg" }),
      delta({ type: "input_json_delta", partial_json: '{"a":1}' }),
      delta({ type: "signature_delta", signature: "ErUBCkYIBRgC" }),
      delta({ type: "citations_delta", citation: { cited_text: "source" } }),
      delta({ text: "hi", type: "text_delta" }),
      'data: {"delta":{"text":"no name"},"type":"content_block_delta"}\n\n',
    ];
    // Bytes as they stand on the wire: quotes in arguments with their backslashes.
    const bytes = 4 + 3 + '{\\"a\\":1}'.length + 2 + 7;
    expect(relayed(style, stream.join("")).relay.textBytes).toBe(bytes);
  });

  it("is estimated by blocks that come whole, too", () => {
    const block = (content_block: object) => event({ type: "content_block_start", content_block });
    const stream =
      block({ type: "text", text: "abc" }) +
      block({ type: "tool_use", id: "t", name: "f", input: {} }) +
      block({ type: "tool_use", id: "t", name: "f", input: { a: 1 } });
    expect(relayed(style, stream).relay.textBytes).toBe(3 + '{"a":1}'.length);
  });
});

describe("R-ERR-6: how a stream ended", () => {
  it("is finished with a stop reason, done with message_stop, neither when cut", () => {
    const open = start("m", { usage, stop_reason: null }) + text("a");
    expect(relayed(style, open).relay).toMatchObject({ finished: false, done: false });
    const unsaid = event({ type: "message_delta", delta: { stop_reason: null }, usage });
    expect(relayed(style, open + unsaid).relay).toMatchObject({ finished: false, done: false });
    const said = open + ended(usage);
    expect(relayed(style, said).relay).toMatchObject({ finished: true, done: false });
    expect(relayed(style, said + stop).relay).toMatchObject({ finished: true, done: true });
  });

  it("gives out the last event also without its empty line, but not one that was cut", () => {
    const bare = 'event: message_stop\ndata: {"type":"message_stop"}';
    for (const [sent, got] of [
      [bare, `${bare}\n\n`],
      [`${bare}\n`, `${bare}\n\n`],
      [`${bare}\r\n`, `${bare}\r\n\n`],
    ] as const) {
      const { relay, text: passed } = relayed(style, text("a") + sent);
      expect(passed).toBe(text("a"));
      expect(relay.end().toString()).toBe(got);
      expect(relay).toMatchObject({ finished: true, done: true });
      expect(relay.end().toString()).toBe("");
    }
    expect(relayed(style, text("abc").slice(0, -8)).relay.end().toString()).toBe("");
    expect(relayed(style, "event: message_stop").relay.end().toString()).toBe("");
  });

  it("ends with the error event: nothing behind it", () => {
    const error = event({ type: "error", error: { type: "overloaded_error", message: "x" } });
    const { text: passed, relay } = relayed(style, text("a") + error + ended(usage) + stop);
    expect(passed).toBe(text("a") + error);
    expect(relay).toMatchObject({ failed: true, finished: false, done: false });
    expect(relay.push([Buffer.from(stop)]).toString()).toBe("");
    expect(relayed(style, 'event: error\ndata: {"error":{}}\n\n').relay.failed).toBe(true);
  });
});

describe("R-TXT-1: whole replies", () => {
  const reply = (model: unknown, extra: object = {}) =>
    JSON.stringify({
      id: "msg_1",
      model,
      content: [
        { type: "thinking", thinking: "hm", signature: "Erx" },
        { type: "text", text: "hello", citations: [{ cited_text: "model" }] },
        { type: "tool_use", id: "t", name: "f", input: { model: "x" } },
      ],
      ...extra,
    });

  it("restore the model name and report usage", () => {
    const told = { input_tokens: 5, cache_read_input_tokens: 4, output_tokens: 3 };
    const relay = style.relayReply(
      Buffer.from(reply("vendor-model", { usage: told })),
      optionsOf({ model: "public/é" }),
    );
    expect(relay.body.toString()).toBe(reply("public/é", { usage: told }));
    expect(relay.usage).toMatchObject({ inputTokens: 9, cachedInputTokens: 4, outputTokens: 3 });
    expect(relay.textBytes).toBe("hm".length + "hello".length + '{"model":"x"}'.length);
  });

  it("pass byte for byte but for that, whatever they hold", () => {
    fc.assert(
      fc.property(unknownMembers, fc.constantFrom("m", null, 7, undefined), (extra, model) => {
        const sent = reply(model, extra);
        const pass = (options: object) =>
          style.relayReply(Buffer.from(sent), optionsOf(options)).body.toString();
        expect(pass({})).toBe(sent);
        expect(pass({ model: "public" })).toBe(reply(model === "m" ? "public" : model, extra));
      }),
    );
  });

  it("pass as they are or are refused, where they are broken", () => {
    fc.assert(
      fc.property(fc.nat(), (at) => {
        const sent = reply("m", { usage });
        const cut = sent.slice(0, at % sent.length);
        try {
          const { body } = style.relayReply(Buffer.from(cut), optionsOf({}));
          expect(body.toString()).toBe(cut);
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadableReplyError);
        }
      }),
    );
  });
});

describe("inputs of calls that come twice", () => {
  const block = (index: number) =>
    event({
      type: "content_block_start",
      index,
      content_block: { type: "tool_use", id: `toolu_${index}`, name: "f", input: {} },
    });
  const piece = (json: string, index = 0) =>
    delta({ type: "input_json_delta", partial_json: json }, { index });
  const begun = start("m") + block(0) + piece('{"path":') + piece('"a\\n"}');

  it.each([
    ["as it came", '{"path":"a\\n"}'],
    ["with other white space", '{ "path" : "a\\n" }'],
  ])("the whole input behind its pieces is taken out: %s", (_form, again) => {
    const { text: passed } = relayed(style, begun + piece(again) + ended(usage) + stop, {});
    expect(passed).toBe(begun + ended(usage) + stop);
  });

  it.each([
    ["another block with the same input", block(1) + piece('{"path":"a\\n"}', 1)],
    ["another input", piece('{"path":"b"}')],
  ])("all other bytes stay: %s", (_form, more) => {
    const stream = begun + more + ended(usage) + stop;
    expect(relayed(style, stream, {}).text).toBe(stream);
  });
});
