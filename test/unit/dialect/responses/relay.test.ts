import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { responses as style } from "../../../../src/dialect/responses/dialect.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { memberOf } from "../../../../src/wire/json/source.ts";
import { cuts, event, interludes, optionsOf, relayed, unknownMembers } from "../relaying.ts";

const usage = {
  input_tokens: 30,
  input_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
  output_tokens: 12,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 42,
};
const about = (type: string, response: object, extra: object = {}) =>
  event({ type, sequence_number: 0, response: { id: "resp_1", ...response }, ...extra });
const delta = (type: string, value: unknown, extra: object = {}) =>
  event({ type, sequence_number: 4, item_id: "msg_1", delta: value, ...extra });
const text = (value: string) => delta("response.output_text.delta", value, { logprobs: [] });
const completed = about("response.completed", { model: "m", status: "completed", usage });

/** Any event that a vendor may send, and its form after the model is renamed. */
const anyEvent = fc.oneof(
  interludes.map((each) => ({ sent: each, got: each })),
  fc
    .tuple(
      fc.constantFrom("vendor-model", 'odd "\\ é', null, undefined),
      fc.constantFrom("created", "in_progress", "queued", "unheard_of"),
      unknownMembers,
    )
    .map(([model, type, extra]) => ({
      sent: about(`response.${type}`, { ...extra, model, usage: null }, extra),
      got: about(
        `response.${type}`,
        { ...extra, model: typeof model === "string" ? "public" : model, usage: null },
        extra,
      ),
    })),
  fc
    .tuple(
      fc.oneof(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 2 })),
      fc.constantFrom("output_text", "function_call_arguments", "unheard_of"),
      unknownMembers,
    )
    .map(([value, type, extra]) => delta(`response.${type}.delta`, value, extra))
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
          const all = `${events.map(({ sent }) => sent).join("")}${completed}: end\n\n`;
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

  it.each(["created", "in_progress", "completed", "incomplete", "failed"])(
    "the model name is restored in response.%s",
    (type) => {
      const named = (model: string) => about(`response.${type}`, { model, deep: { model: "m" } });
      const { text: got } = relayed(style, named("vendor-model"), { model: "public" });
      expect(got).toBe(named("public"));
    },
  );

  it("keeps the spelling of numbers, duplicate members, white space and several data lines", () => {
    const odd =
      'data: { "response" : { "a":2.50, "a":1e400 , "model" : "vendor-model" ,\r\ndata:"é":12345678901234567890 } ,\r\n: comment\r\ndata: "type" : "response.created" }\r\n\r\n';
    expect(relayed(style, text("a") + odd, { model: "public" }).text).toBe(
      text("a") + odd.replace("vendor-model", "public"),
    );
  });

  it("leaves what only looks like the model's name", () => {
    const stream =
      text('"response":{"model":"vendor-model"}') +
      event({ type: "response.output_item.done", item: { model: "m" }, model: "m" });
    expect(relayed(style, stream, { model: "public" }).text).toBe(stream);
  });
});

describe("R-MON-8: what a stream consumed", () => {
  it.each(["completed", "incomplete", "failed"])(
    "the usage of a stream is read from response.%s",
    (type) => {
      const begun = text("hi") + about(`response.${type}`, { usage });
      const { relay } = relayed(style, begun + about("response.failed", { usage: null }));
      expect(relay.usage).toMatchObject({
        inputTokens: 30,
        cachedInputTokens: 8,
        cacheWriteTokens: 2,
        outputTokens: 12,
        reasoningTokens: 5,
      });
    },
  );

  it("is not taken from impossible figures, and no part is more than its whole", () => {
    for (const bad of [{ ...usage, input_tokens: -1 }, { output_tokens: 1 }, {}, "x", null]) {
      const { relay } = relayed(style, about("response.completed", { usage: bad }));
      expect(relay.usage).toBeUndefined();
    }
    const odd = { ...usage, input_tokens: 9, input_tokens_details: { cached_tokens: 50 } };
    const { relay } = relayed(style, about("response.completed", { usage: odd }));
    expect(relay.usage).toMatchObject({ inputTokens: 9, cachedInputTokens: 9 });
  });

  it("is the output with the reasoning that the vendor counts beside it, as its total says", () => {
    const usageOf = (counts: object) =>
      relayed(style, about("response.completed", { usage: { ...usage, ...counts } })).relay.usage;
    const beside = { output_tokens: 4, total_tokens: 30 + 4 + 5 };
    expect(usageOf(beside)).toMatchObject({ outputTokens: 9, reasoningTokens: 5 });
    expect(usageOf({ ...beside, total_tokens: 34 })).toMatchObject({
      outputTokens: 4,
      reasoningTokens: 4,
    });
  });

  it("is estimated by the text of deltas: text, refusals, reasoning, arguments", () => {
    const stream = [
      text("abcd"),
      delta("response.refusal.delta", "no"),
      delta("response.reasoning_summary_text.delta", "efg"),
      delta("response.function_call_arguments.delta", '{"a":1}'),
      delta("response.audio.delta", "UklGRg=="),
      delta("response.shell_call_output_content.delta", { stdout: "out" }),
      delta("response.unlike_a_delta", "xyz"),
      event({ type: "response.output_text.done", text: "abcd" }),
    ];
    // Bytes as they stand on the wire: quotes in arguments with their backslashes.
    const bytes = 4 + 2 + 3 + '{\\"a\\":1}'.length;
    expect(relayed(style, stream.join("")).relay.textBytes).toBe(bytes);
  });

  it("is estimated by the output where no text was streamed", () => {
    const output = [{ type: "message", content: [{ type: "output_text", text: "whole" }] }];
    const last = about("response.completed", { output });
    expect(relayed(style, last).relay.textBytes).toBe(5);
    expect(relayed(style, text("of two parts") + last).relay.textBytes).toBe(12);
  });
});

describe("R-ERR-6: how a stream ended", () => {
  it("is done with its terminal event, and not when cut", () => {
    const open = about("response.created", { status: "in_progress" }) + text("a");
    expect(relayed(style, open).relay).toMatchObject({ finished: false, done: false });
    for (const type of ["response.completed", "response.incomplete"]) {
      const { relay } = relayed(style, open + about(type, {}));
      expect(relay).toMatchObject({ finished: true, done: true, failed: false });
    }
  });

  it("gives out the last event also without its empty line, but not one that was cut", () => {
    const bare = completed.trimEnd();
    const { relay } = relayed(style, text("a") + bare);
    expect(relay.end().toString()).toBe(completed);
    expect(relay.done).toBe(true);
    expect(relayed(style, bare.slice(0, -1)).relay.end().toString()).toBe("");
  });

  it("is failed with response.failed, or with an error, of which only a summary may follow", () => {
    const failed = about("response.failed", { status: "failed", usage, model: "vendor-model" });
    expect(relayed(style, failed).relay).toMatchObject({ failed: true, done: false });
    const words = { type: "api_error", code: "upstream_error", message: "x" };
    const error = event({ type: "error", sequence_number: 9, error: words });
    const { text: got, relay } = relayed(style, error + text("a") + failed + completed, {
      model: "public",
    });
    expect(got).toBe(error + failed.replace("vendor-model", "public"));
    expect(relay).toMatchObject({ failed: true, done: false, usage: { outputTokens: 12 } });
  });

  it("is failed with whatever an SDK takes for an error; a null error is none", () => {
    expect(relayed(style, 'data: {"error":{"message":"x"}}\n\n').relay.failed).toBe(true);
    expect(relayed(style, 'event: error\ndata: {"message":"x"}\n\n').relay.failed).toBe(true);
    expect(relayed(style, 'data: {"error":null}\n\n').relay.failed).toBe(false);
    expect(relayed(style, about("response.created", { error: {} })).relay.failed).toBe(false);
  });

  it("is reported with the sequence number that comes next", () => {
    const next = (stream: string): unknown => {
      const lost = new GatewayError(ErrorCode.UPSTREAM_ERROR, "lost");
      const told = relayed(style, stream).relay.errorEvent(lost).toString();
      return JSON.parse(told.replace(/^event: error\ndata: /, "")).sequence_number;
    };
    expect(next("")).toBe(0);
    expect(next(text("a"))).toBe(5);
    const later = event({ type: "response.x", sequence_number: 1207 });
    expect(next(text("a") + later + 'data: {"sequence_number":"x"}\n\n')).toBe(1208);
  });
});

describe("R-TXT-1: whole replies", () => {
  const reply = (model: unknown, extra: object = {}) =>
    JSON.stringify({
      id: "resp_1",
      model,
      output: [
        { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] },
        { type: "message", content: [{ type: "output_text", text: 'say "hi"', annotations: [] }] },
        { type: "message", content: [{ type: "refusal", refusal: "no" }] },
        { type: "function_call", name: "f", arguments: "{}", model: "x" },
        { type: "image_generation_call", result: `${"A".repeat(100)}\\"]` },
      ],
      ...extra,
    });

  it("restore the model name and report usage", () => {
    const relay = style.relayReply(
      Buffer.from(reply("vendor-model", { usage })),
      optionsOf({ model: "public/é" }),
    );
    expect(relay.body.toString()).toBe(reply("public/é", { usage }));
    expect(relay.usage).toMatchObject({ inputTokens: 30, cachedInputTokens: 8, outputTokens: 12 });
    expect(relay.textBytes).toBe("hm".length + 'say \\"hi\\"'.length + "no".length + "{}".length);
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
});

describe("a stream that is ended before its vendor's end", () => {
  it("keeps the text of the request and of all items that its last event repeats (R-TXT-14)", () => {
    const schema = String.raw`{"7":{"enum":[2512292042121000001,1.10,"\u00e9\/"]},"1":-0}`;
    const tools = `[{"type":"function","name":"f","parameters":${schema}}]`;
    const done = `{"type":"mcp_call","id":"mcp_1","output":${schema}}`;
    const open = (status: string): string =>
      `{"type":"x_call","id":"x_1","status":"${status}","input":${schema}}`;
    const annotation = `{"type":"x","score":1.10}`;
    const part = (said: string): string =>
      `{"type":"output_text","annotations":[${annotation}],"text":"${said}"}`;
    const message = (content: string, status: string): string =>
      `{"type":"message","id":"msg_1","status":"${status}","n":1e2,"content":[${content}]}`;
    const events = [
      `{"type":"response.created","response":{"id":"resp_1","model":"v","status":"in_progress","tools":${tools},"output":[]}}`,
      `{"type":"response.output_item.done","output_index":0,"item":${done}}`,
      `{"type":"response.output_item.added","output_index":1,"item":${open("in_progress")}}`,
      `{"type":"response.output_item.added","output_index":2,"item":${message("", "in_progress")}}`,
      `{"type":"response.content_part.added","output_index":2,"content_index":0,"part":${part("")}}`,
      `{"type":"response.output_text.delta","output_index":2,"content_index":0,"delta":"One"}`,
    ];
    const given = events.map((data) => `data: ${data}\n\n`).join("");
    const { relay } = relayed(style, given, { model: "public" });
    const last = relay.stop(undefined).toString().trimEnd().split("\ndata: ").at(-1) ?? "";
    const response = memberOf(last, "response");
    expect(memberOf(response, "tools")).toBe(tools);
    expect(memberOf(response, "model")).toBe('"public"');
    expect(memberOf(response, "output")).toBe(
      `[${done},${open("incomplete")},${message(part("One"), "incomplete")}]`,
    );
  });
});

describe("arguments of calls that come twice", () => {
  const item = (index: number) =>
    event({
      type: "response.output_item.added",
      sequence_number: 2,
      output_index: index,
      item: { type: "function_call", id: `fc_${index}`, call_id: "c", name: "f", arguments: "" },
    });
  const piece = (json: string, index = 0) =>
    event({
      type: "response.function_call_arguments.delta",
      sequence_number: 4,
      item_id: `fc_${index}`,
      output_index: index,
      delta: json,
    });
  const begun = item(0) + piece('{"path":') + piece('"a\\n"}');

  it.each([
    ["as they came", '{"path":"a\\n"}'],
    ["with other white space", '{ "path" : "a\\n" }'],
  ])("the whole arguments behind their pieces are empty: %s", (_form, again) => {
    const { text: passed } = relayed(style, begun + piece(again) + completed, {});
    expect(passed.startsWith(begun + piece(""))).toBe(true);
  });

  it.each([
    ["another call with the same arguments", item(1) + piece('{"path":"a\\n"}', 1)],
    ["other arguments", piece('{"path":"b"}')],
  ])("all other bytes stay: %s", (_form, more) => {
    expect(relayed(style, begun + more, {}).text).toBe(begun + more);
  });
});
