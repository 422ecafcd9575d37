/** Streams of chat vendors that differ from the documentation, as public reports describe them. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { GenerateEvent } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { chatCompletions as style } from "../../../../src/dialect/chat-completions/dialect.ts";
import { relayed } from "../relaying.ts";

type Json = Readonly<Record<string, unknown>>;

const chunk = (delta: Json, more: Json = {}): Json => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, ...more }],
});
const calls = (...all: Json[]): Json => chunk({ tool_calls: all });
const finish = (reason: string): Json => chunk({}, { finish_reason: reason });

function decoded(...chunks: readonly (Json | "[DONE]")[]): GenerateEvent[] {
  const text = chunks
    .map((each) => `data: ${each === "[DONE]" ? each : JSON.stringify(each)}\n\n`)
    .join("");
  const decoder = style.decodeStream();
  return [...decoder.push([Buffer.from(text)]), ...decoder.end()];
}

/** The parts in their order: calls as `id name(input)`, texts as `kind: text`. */
function partsOf(events: readonly GenerateEvent[]): string[] {
  const parts = new Map<number, { head: string; text: string; tail: string }>();
  for (const { kind } of events) {
    if (kind.case === "partStart") {
      const { part, index } = kind.value;
      const call = part?.kind.case === "toolCall" ? part.kind.value : undefined;
      const head = call === undefined ? `${part?.kind.case}: ` : `${call.id} ${call.name}(`;
      parts.set(index, { head, text: "", tail: call === undefined ? "" : ")" });
    } else if (kind.case === "partDelta") {
      const { delta, index } = kind.value;
      const part = parts.get(index);
      if (part && (delta.case === "text" || delta.case === "input")) part.text += delta.value;
    }
  }
  return [...parts.values()].map(({ head, text, tail }) => head + text + tail);
}

const usageOf = (...chunks: readonly (Json | "[DONE]")[]): unknown => {
  const end = decoded(...chunks).findLast(({ kind }) => kind.case === "end");
  return end?.kind.case === "end" ? end.kind.value.usage : undefined;
};

describe("tool calls", () => {
  const fn = (name: string, input: string) => ({ function: { name, arguments: input } });
  const a = '{"path":"a"}';
  const b = '{"path":"b"}';
  const two = [`call_1 read_file(${a})`, `call_2 list_dir(${b})`];

  it.each([
    [
      "two heads with index 0, the second's input with index 1",
      [
        calls({ index: 0, id: "call_1", ...fn("read_file", a) }),
        calls({ index: 0, id: "call_2", ...fn("list_dir", "") }),
        calls({ index: 1, function: { arguments: b } }),
      ],
    ],
    [
      "interleaved by index",
      [
        calls({ index: 0, id: "call_1", ...fn("read_file", "") }),
        calls({ index: 1, id: "call_2", ...fn("list_dir", "") }),
        calls({ index: 0, function: { arguments: a.slice(0, 5) } }),
        calls({ index: 1, function: { arguments: b.slice(0, 5) } }),
        calls({ index: 0, function: { arguments: a.slice(5) } }),
        calls({ index: 1, function: { arguments: b.slice(5) } }),
      ],
    ],
    [
      "interleaved by id, with index 0",
      [
        calls({ index: 0, id: "call_1", ...fn("read_file", "") }),
        calls({ index: 0, id: "call_2", ...fn("list_dir", "") }),
        calls({ index: 0, id: "call_1", function: { arguments: a } }),
        calls({ index: 0, id: "call_2", function: { arguments: b } }),
      ],
    ],
    [
      "the whole list again in a last message",
      [
        calls({ index: 0, id: "call_1", ...fn("read_file", a) }),
        calls({ index: 1, id: "call_2", ...fn("list_dir", b) }),
        {
          object: "chat.completion",
          choices: [
            {
              index: 0,
              finish_reason: "tool_calls",
              message: {
                role: "assistant",
                tool_calls: [
                  { id: "call_1", ...fn("read_file", a) },
                  { id: "call_2", ...fn("list_dir", b) },
                ],
              },
            },
          ],
        },
      ],
    ],
    [
      "only in a last message",
      [
        {
          object: "chat.completion",
          choices: [
            {
              index: 0,
              finish_reason: "tool_calls",
              message: {
                tool_calls: [
                  { id: "call_1", ...fn("read_file", a) },
                  { id: "call_2", ...fn("list_dir", b) },
                ],
              },
            },
          ],
        },
      ],
    ],
  ])("are told apart: %s", (_name, chunks) => {
    expect(partsOf(decoded(...chunks, finish("tool_calls"), "[DONE]"))).toEqual(
      two.map((each) => each),
    );
  });

  it("without ids and with index 0, another name or a new object begins another call", () => {
    const names = partsOf(
      decoded(
        calls({ index: 0, ...fn("read_file", a) }),
        calls({ index: 0, ...fn("list_dir", b) }),
        calls({ index: 0, ...fn("list_dir", a) }),
        finish("tool_calls"),
      ),
    );
    expect(names.map((each) => each.replace(/^\S+ /, ""))).toEqual([
      `read_file(${a})`,
      `list_dir(${b})`,
      `list_dir(${a})`,
    ]);
    expect(new Set(names.map((each) => each.split(" ")[0])).size).toBe(3);
  });

  it.each([
    [
      "name",
      { index: 0, id: "call_1", ...fn("", "") },
      { index: 0, id: "call_1", ...fn("read_file", "{}") },
    ],
    [
      "name, behind some input",
      { index: 0, id: "call_1", function: { arguments: "" } },
      { index: 0, ...fn("read_file", "{}") },
    ],
    [
      "name, and the id comes later",
      { index: 0, ...fn("read_file", "") },
      { index: 0, id: "late", ...fn("read_file", "{}") },
    ],
  ])("begin when their name is known: late %s", (_name, first, second) => {
    const events = decoded(calls(first), calls(second), finish("tool_calls"));
    expect(partsOf(events)).toEqual([expect.stringContaining("read_file({})")]);
    const starts = events.filter(({ kind }) => kind.case === "partStart");
    expect(starts).toHaveLength(1);
  });

  it.each([
    ["an empty object first", ["{}", '{"path":', '"a"}']],
    ["an empty object in two pieces of a call", ["{", '"path":"a"', "}"]],
    ["null first", ["null", a]],
    ["all of it twice", [a, a]],
    ["pieces, then all of it", ['{"path"', ':"a"}', a]],
  ])("have their input once: %s", (_name, pieces) => {
    const [head, ...rest] = pieces;
    const events = decoded(
      calls({ index: 0, id: "call_1", ...fn("read_file", head ?? "") }),
      ...rest.map((piece) => calls({ index: 0, function: { arguments: piece } })),
      finish("tool_calls"),
    );
    expect(partsOf(events)).toEqual([`call_1 read_file(${a})`]);
  });

  it.each([
    [
      "a new id with a late name, though its index is taken",
      [
        calls({ index: 0, id: "call_1", ...fn("read_file", a) }),
        calls({ index: 0, id: "call_2", ...fn("", "") }),
        calls({ index: 0, id: "call_2", ...fn("list_dir", b) }),
      ],
    ],
    [
      "another id in each delta",
      [
        calls({ index: 0, id: "call_1", ...fn("read_file", "") }),
        calls({ index: 0, function: { arguments: '{"path"' } }),
        calls({ index: 0, id: "x1", function: { arguments: ':"a' } }),
        calls({ index: 0, id: "x2", ...fn("read_file", '"}') }),
        calls({ index: 1, id: "call_2", ...fn("list_dir", b) }),
      ],
    ],
    [
      "each call once more at its end, without its id",
      [
        calls({ index: 0, id: "call_1", ...fn("read_file", "") }),
        calls({ index: 0, function: { arguments: a } }),
        calls({ index: 0, ...fn("read_file", '{ "path": "a" }') }),
        calls({ index: 1, id: "call_2", ...fn("list_dir", b) }),
        calls({ index: 1, ...fn("list_dir", b) }),
      ],
    ],
    [
      "a last message with other ids",
      [
        calls({ index: 0, id: "call_1", ...fn("read_file", a) }),
        calls({ index: 1, id: "call_2", ...fn("list_dir", "") }),
        {
          choices: [
            {
              index: 0,
              finish_reason: "tool_calls",
              delta: {},
              message: {
                tool_calls: [
                  { id: "r1", ...fn("read_file", a) },
                  { id: "r2", ...fn("list_dir", b) },
                ],
              },
            },
          ],
        },
      ],
    ],
  ])("are the same two calls: %s", (_name, chunks) => {
    expect(partsOf(decoded(...chunks, finish("tool_calls"), "[DONE]"))).toEqual(two);
  });

  it("of one reply have unique ids, streamed and whole", () => {
    const ids = (events: readonly GenerateEvent[]) =>
      partsOf(events).map((part) => part.split(" ")[0]);
    const all = ["f", "g", "h"].map((name, index) => ({ index, id: "x", ...fn(name, a) }));
    const once = decoded(...all.map((each) => calls(each)), finish("tool_calls"));
    expect(new Set(ids(once)).size).toBe(3);
    const last = { index: 0, finish_reason: "tool_calls", message: { tool_calls: all } };
    const twice = decoded(...all.map((each) => calls(each)), { choices: [last] });
    expect(partsOf(twice)).toEqual(partsOf(once));
    const { parts } = style.decodeReply(Buffer.from(JSON.stringify({ choices: [last] })));
    expect(parts.map(({ kind }) => kind.case === "toolCall" && kind.value.input)).toEqual([
      a,
      a,
      a,
    ]);
    const wholeIds = parts.map(({ kind }) => kind.case === "toolCall" && kind.value.id);
    expect(wholeIds).toEqual(ids(once));
  });

  it.each([
    [
      "legacy",
      [{ function_call: { name: "f", arguments: "" } }, { function_call: { arguments: a } }],
    ],
    [
      "legacy beside an empty list",
      [
        { tool_calls: [], function_call: { name: "f", arguments: a } },
        { tool_calls: [{}], function_call: {} },
      ],
    ],
    [
      "with an empty custom tool beside the function",
      [{ tool_calls: [{ index: 0, id: "c", custom: {}, ...fn("f", a) }] }],
    ],
  ])("are read in the form that has something: %s", (_name, deltas) => {
    const events = decoded(...deltas.map((delta) => chunk(delta)), finish("tool_calls"));
    expect(partsOf(events)).toEqual([expect.stringMatching(/^\S+ f\(\{"path":"a"\}\)$/)]);
  });

  it("of custom tools keep any text, also one that looks like JSON", () => {
    for (const pieces of [["{}", '{"a":1}'], ["null"], ["a", "b"], ["{", "{}"]]) {
      const [head, ...rest] = pieces;
      const events = decoded(
        calls({ index: 0, id: "c", type: "custom", custom: { name: "patch", input: head } }),
        ...rest.map((input) => calls({ index: 0, type: "custom", custom: { input } })),
        finish("tool_calls"),
      );
      expect(partsOf(events)).toEqual([`c patch(${pieces.join("")})`]);
    }
  });

  it.each([
    [["{", '{"path":"a"}']],
    [[a.slice(0, 4), a.slice(4), a.slice(0, 4), a.slice(4)]],
    [["null", "{}", a, "{}"]],
  ])("have their input once, however its repetition is cut: %j", (pieces) => {
    const events = decoded(
      calls({ index: 0, id: "call_1", ...fn("read_file", "") }),
      ...pieces.map((piece) => calls({ index: 0, function: { arguments: piece } })),
      finish("tool_calls"),
    );
    expect(partsOf(events)).toEqual([`call_1 read_file(${a})`]);
  });

  it("with input and no name are an error, streamed and whole; without either they are none", () => {
    const nameless = { index: 0, id: "c", function: { name: "", arguments: a } };
    const text = chunk({ content: "Reading." });
    const end = (...chunks: readonly Json[]) => decoded(...chunks).at(-1)?.kind.case;
    expect(end(text, calls(nameless), finish("tool_calls"))).toBe("error");
    expect(end(text, calls({ ...nameless, function: { arguments: "{}" } }), finish("stop"))).toBe(
      "end",
    );
    const whole = (call: Json) =>
      style.decodeReply(
        Buffer.from(
          JSON.stringify({
            choices: [{ message: { content: "Hi", tool_calls: [call] }, finish_reason: "stop" }],
          }),
        ),
      );
    expect(() => whole(nameless)).toThrow(/tool call/);
    expect(whole({ ...nameless, function: {} }).parts).toHaveLength(1);
  });

  it("an input in any pieces arrives as it was written, however late its beginning is sent", () => {
    const input = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify({ value }));
    fc.assert(
      fc.property(input, fc.array(fc.nat(200), { maxLength: 6 }), (text, cuts) => {
        const places = [0, ...cuts.map((cut) => cut % text.length), text.length].toSorted(
          (x, y) => x - y,
        );
        const pieces = places.slice(1).map((end, i) => text.slice(places[i], end));
        const events = decoded(
          calls({ index: 0, id: "c", function: { name: "f", arguments: "" } }),
          ...pieces.map((piece) => calls({ index: 0, function: { arguments: piece } })),
          finish("tool_calls"),
        );
        expect(partsOf(events)).toEqual([`c f(${text})`]);
      }),
    );
  });
});

describe("members that are present but empty", () => {
  const empty: Json[] = [
    { tool_calls: [] },
    { tool_calls: null },
    { tool_calls: [{}] },
    { tool_calls: [{ index: 0, id: "", function: { name: "", arguments: "" } }] },
    { function_call: {} },
    { function_call: null },
    { annotations: [] },
    { refusal: "" },
    { refusal: null },
    { reasoning_content: "" },
    { reasoning: null },
    { audio: {} },
    { extra_content: {} },
  ];

  it("split no text, and make no call: %o", () => {
    for (const members of empty) {
      const events = decoded(
        chunk({ content: "One ", ...members }),
        chunk({ content: "two", ...members }),
        chunk({ ...members }, { finish_reason: "stop" }),
      );
      expect([members, partsOf(events)]).toEqual([members, ["text: One two"]]);
    }
  });

  it("split no reasoning, and count for nothing in whole replies", () => {
    for (const members of empty) {
      if ("reasoning_content" in members || "reasoning" in members) continue;
      const events = decoded(
        chunk({ reasoning_content: "Hm ", ...members }),
        chunk({ reasoning_content: "so", ...members }),
        chunk({ content: "One" }, { finish_reason: "stop" }),
      );
      expect([members, partsOf(events)]).toEqual([members, ["reasoning: Hm so", "text: One"]]);
      const body = {
        choices: [{ message: { content: "One", ...members }, finish_reason: "stop" }],
      };
      const { parts } = style.decodeReply(Buffer.from(JSON.stringify(body)));
      expect(parts.map(({ kind }) => kind.case)).toEqual(["text"]);
    }
  });
});

describe("a stream that ends by the whole message", () => {
  const last = (message: Json): Json => ({
    object: "chat.completion",
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", ...message } }],
    usage: { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 },
  });

  it("shows its text once", () => {
    expect(partsOf(decoded(chunk({ content: "One two" }), last({ content: "One two" })))).toEqual([
      "text: One two",
    ]);
    expect(partsOf(decoded(chunk({ content: "One " }), last({ content: "One two" })))).toEqual([
      "text: One two",
    ]);
    expect(
      partsOf(
        decoded(
          chunk({ reasoning_content: "Hm" }),
          chunk({ content: "One" }),
          last({ reasoning_content: "Hm", content: "One" }),
        ),
      ),
    ).toEqual(["reasoning: Hm", "text: One"]);
  });

  it("adds what only the message has", () => {
    expect(partsOf(decoded(last({ content: "One", refusal: "No" })))).toEqual([
      "text: One",
      "refusal: No",
    ]);
  });

  it("is read with messages in place of deltas, too", () => {
    const part = (content: string, finish_reason: string | null = null): Json => ({
      choices: [{ index: 0, message: { content }, finish_reason }],
    });
    for (const pieces of [
      ["One ", "two"],
      ["ha", "ha", "ha"],
      ["\n", "\n\n", "a"],
    ]) {
      const expected = [`text: ${pieces.join("")}`];
      expect(partsOf(decoded(...pieces.map((each) => part(each)), finish("stop")))).toEqual(
        expected,
      );
    }
    expect(partsOf(decoded(part("One "), part("two", "stop")))).toEqual(["text: One two"]);
    expect(partsOf(decoded(part("One "), part("One two", "stop")))).toEqual(["text: One two"]);
  });

  it("repeats nothing if the message differs in white space, and adds sources once", () => {
    const cited = (url: string): Json => ({
      type: "url_citation",
      url_citation: { url, title: "t", start_index: 0, end_index: 1 },
    });
    expect(partsOf(decoded(chunk({ content: "\nOne two" }), last({ content: "One two" })))).toEqual(
      ["text: \nOne two"],
    );
    const events = decoded(
      chunk({ content: "One", annotations: [cited("https://a.test")] }),
      last({ content: "One", annotations: [cited("https://a.test"), cited("https://b.test")] }),
    );
    const citations = events.flatMap(({ kind }) =>
      kind.case === "partDelta" && kind.value.delta.case === "citation"
        ? [kind.value.delta.value.url]
        : [],
    );
    expect(citations).toEqual(["https://a.test", "https://b.test"]);
  });
});

describe("usage", () => {
  const count = (usage: Json, choices: unknown[] = []): Json => ({ choices, usage });
  const done = finish("stop");

  it("is read behind the first chunk without choices, to the end", () => {
    const first = {
      ...done,
      usage: { prompt_tokens: 2000, completion_tokens: 9, total_tokens: 2009 },
    };
    const details = { cached_tokens: 1800 };
    const later = count({
      prompt_tokens: 2000,
      completion_tokens: 9,
      total_tokens: 2009,
      prompt_tokens_details: details,
    });
    const chunks = [chunk({ content: "a" }), first, { choices: [] }, later, "[DONE]"] as const;
    expect(usageOf(...chunks)).toMatchObject({ inputTokens: 2000, cachedInputTokens: 1800 });
    const text = chunks
      .map((each) => `data: ${each === "[DONE]" ? each : JSON.stringify(each)}\n\n`)
      .join("");
    expect(relayed(style, text).relay.usage).toMatchObject({ cachedInputTokens: 1800 });
  });

  it("only grows: a later 0 or absence replaces nothing", () => {
    const full = {
      prompt_tokens: 50,
      completion_tokens: 9,
      total_tokens: 59,
      prompt_tokens_details: { cached_tokens: 40 },
    };
    for (const later of [
      { prompt_tokens: 0, completion_tokens: 12 },
      { prompt_tokens: 50, completion_tokens: 0 },
      {},
    ]) {
      const chunks = [chunk({ content: "a" }), count(full), done, count(later)];
      const expected = { inputTokens: 50, cachedInputTokens: 40 };
      expect(usageOf(...chunks, "[DONE]")).toMatchObject(expected);
      const text = chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
      expect(relayed(style, text).relay.usage).toMatchObject(expected);
    }
  });

  it.each([
    [
      "of a choice",
      { choices: [{ index: 0, delta: {}, usage: { prompt_tokens: 5, completion_tokens: 2 } }] },
    ],
    ["of x_groq", { choices: [], x_groq: { usage: { prompt_tokens: 5, completion_tokens: 2 } } }],
  ])("is read in the place of a vendor: %s", (_name, place) => {
    const expected = { inputTokens: 5, outputTokens: 2 };
    const chunks = [chunk({ content: "a" }), done, place];
    expect(usageOf(...chunks, "[DONE]")).toMatchObject(expected);
    const text = chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
    const { relay, text: out } = relayed(style, text);
    expect(relay.usage).toMatchObject(expected);
    expect(out).toBe(text);
    const message = { role: "assistant", content: "a" };
    const whole = JSON.stringify({
      ...place,
      choices: [{ ...place.choices[0], index: 0, message, finish_reason: "stop" }],
    });
    const options = { publicModel: undefined, hideUsage: false, choices: 1 };
    expect(style.relayReply(Buffer.from(whole), options).usage).toMatchObject(expected);
    expect(style.decodeReply(Buffer.from(whole)).usage).toMatchObject(expected);
  });

  it.each([
    [
      { prompt_tokens_details: { cached_tokens: 0 }, cache_read_input_tokens: 2455 },
      { cachedInputTokens: 2455 },
    ],
    [{ prompt_cache_hit_tokens: 30 }, { cachedInputTokens: 30 }],
    [{ cached_tokens: 30 }, { cachedInputTokens: 30 }],
    [
      { prompt_tokens: 4, total_tokens: 27, cache_read_input_tokens: 2455 },
      { inputTokens: 2459, cachedInputTokens: 2455 },
    ],
    [{ cache_creation_input_tokens: 30 }, { cacheWriteTokens: 30 }],
    [{ prompt_tokens_details: { cached_creation_tokens: 30 } }, { cacheWriteTokens: 30 }],
  ])("has the cached and written tokens of compatible vendors: %o", (more, expected) => {
    const usage = { prompt_tokens: 2459, completion_tokens: 23, total_tokens: 2482, ...more };
    expect(usageOf(chunk({ content: "a" }), done, count(usage), "[DONE]")).toMatchObject({
      inputTokens: 2459,
      ...expected,
    });
  });

  it.each([
    [
      "hidden thoughts",
      { prompt_tokens: 20, completion_tokens: 198, total_tokens: 623 },
      { inputTokens: 20, outputTokens: 603, reasoningTokens: 405 },
    ],
    [
      "reasoning beside the output",
      {
        prompt_tokens: 20,
        completion_tokens: 10,
        total_tokens: 35,
        completion_tokens_details: { reasoning_tokens: 5 },
      },
      { outputTokens: 15, reasoningTokens: 5 },
    ],
    [
      "cached tokens beside the input",
      { prompt_tokens: 20, completion_tokens: 10, total_tokens: 130, cache_read_input_tokens: 100 },
      { inputTokens: 120, cachedInputTokens: 100, outputTokens: 10 },
    ],
    [
      "a total below the parts, which is ignored",
      { prompt_tokens: 20, completion_tokens: 10, total_tokens: 5 },
      { inputTokens: 20, outputTokens: 10 },
    ],
  ])("has the count that only the total contains: %s", (_name, usage, expected) => {
    expect(usageOf(chunk({ content: "a" }), done, count(usage), "[DONE]")).toMatchObject(expected);
  });
});

describe("an end that contradicts the reply", () => {
  const stopOf = (...chunks: readonly Json[]): unknown => {
    const end = decoded(...chunks, "[DONE]").at(-1)?.kind;
    return end?.case === "end" ? end.value.stopReason : undefined;
  };
  it("is the end of what came", () => {
    expect(stopOf(chunk({ content: "a" }), finish("tool_calls"))).toBe(StopReason.END);
    expect(stopOf(chunk({ content: "a" }), finish("function_call"))).toBe(StopReason.END);
    const call = calls({ index: 0, id: "c", function: { name: "f", arguments: "{}" } });
    expect(stopOf(call, finish("stop"))).toBe(StopReason.TOOL_CALLS);
    expect(stopOf(call, finish("length"))).toBe(StopReason.LENGTH);
  });
});
