/**
 * Clients join the pieces of a call's input, so a relay must not pass what a vendor sends before
 * the real one.
 */
import { describe, expect, it } from "vitest";
import { chatCompletions } from "../../../src/dialect/chat-completions/dialect.ts";
import type { TextDialect } from "../../../src/dialect/dialect.ts";
import { messages } from "../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../src/dialect/responses/dialect.ts";
import { ErrorCode, GatewayError } from "../../../src/core/errors.ts";
import { event, optionsOf } from "./relaying.ts";

/** Writes the events of a style. */
interface Writer {
  readonly style: TextDialect;
  /** Begins a call. */
  readonly head: (call: number) => string;
  readonly piece: (call: number, text: string) => string;
  /** Ends a call, if the style does. */
  readonly end: (call: number, whole: string) => string;
  readonly text: (text: string) => string;
  /** Ends the reply. */
  readonly finish: () => string;
  /** The member of a piece, with its text. */
  readonly member: RegExp;
}

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason: finish }], model: "m" })}\n\n`;

const chat: Writer = {
  style: chatCompletions,
  head: (index) =>
    chunk({
      tool_calls: [
        { index, id: `call_${index}`, type: "function", function: { name: "f", arguments: "" } },
      ],
    }),
  piece: (index, text) => chunk({ tool_calls: [{ index, function: { arguments: text } }] }),
  end: () => "",
  text: (content) => chunk({ content }),
  finish: () => `${chunk({}, "tool_calls")}data: [DONE]\n\n`,
  member: /"index":(\d),"function":\{"arguments":("(?:[^"\\]|\\.)*")/g,
};

const blocks: Writer = {
  style: messages,
  head: (index) =>
    event({
      type: "content_block_start",
      index,
      content_block: { type: "tool_use", id: `toolu_${index}`, name: "f", input: {} },
    }),
  piece: (index, partial_json) =>
    event({
      type: "content_block_delta",
      index,
      delta: { type: "input_json_delta", partial_json },
    }),
  end: (index) => event({ type: "content_block_stop", index }),
  text: (text) =>
    event({ type: "content_block_delta", index: 9, delta: { type: "text_delta", text } }),
  finish: () =>
    event({
      type: "message_delta",
      delta: { stop_reason: "tool_use" },
      usage: { output_tokens: 3 },
    }) + event({ type: "message_stop" }),
  member: /"index":(\d),"delta":\{"type":"input_json_delta","partial_json":("(?:[^"\\]|\\.)*")/g,
};

const completed = (output: readonly object[]): string =>
  event({ type: "response.completed", response: { id: "r", output } });
const call = (index: number, text: string) => ({
  type: "function_call",
  id: `fc_${index}`,
  call_id: `call_${index}`,
  name: "f",
  arguments: text,
});

const items: Writer = {
  style: responses,
  head: (output_index) =>
    event({ type: "response.output_item.added", output_index, item: call(output_index, "") }),
  piece: (output_index, delta) =>
    event({
      type: "response.function_call_arguments.delta",
      output_index,
      item_id: `fc_${output_index}`,
      delta,
    }),
  end: (output_index, whole) =>
    event({
      type: "response.function_call_arguments.done",
      output_index,
      item_id: `fc_${output_index}`,
      arguments: whole,
    }) +
    event({ type: "response.output_item.done", output_index, item: call(output_index, whole) }),
  text: (delta) =>
    event({ type: "response.output_text.delta", output_index: 9, content_index: 0, delta }) +
    event({ type: "response.output_text.delta", output_index: 9, content_index: 0, delta }),
  finish: () => completed([{ type: "message", id: "msg_1", content: [] }]),
  member: /"output_index":(\d),"item_id":"fc_\d","delta":("(?:[^"\\]|\\.)*")/g,
};

const real = '{"city":"Zürich"}';
const one = real.slice(0, 9);
const two = real.slice(9);

describe.each([
  ["chat completions", chat],
  ["messages", blocks],
  ["responses", items],
])("a relayed stream of %s", (_name, writer) => {
  const { style, head, piece, end, finish, member } = writer;
  const text = writer.text("hi");

  /** Passes events one by one. */
  function passed(events: readonly string[]): string[] {
    const relay = style.relayStream(optionsOf({}));
    const out = events.map((each) => relay.push([Buffer.from(each)]).toString());
    return [...out, relay.end().toString()];
  }

  /** Passes events one by one, and in one read, and compares both. */
  function relayed(events: readonly string[]): string {
    const out = passed(events).join("");
    const relay = style.relayStream(optionsOf({}));
    const whole = relay.push([Buffer.from(events.join(""))]).toString() + relay.end().toString();
    expect(whole).toBe(out);
    return out;
  }

  /** Returns the joined input of each call. */
  function joined(out: string): string[] {
    const inputs: string[] = [];
    for (const [, index, json] of out.matchAll(member)) {
      const at = Number(index);
      inputs[at] = (inputs[at] ?? "") + (JSON.parse(json ?? "") as string);
    }
    return inputs;
  }

  /** The stream of one call with these pieces. */
  const stream = (pieces: readonly string[], whole: string): string[] => [
    head(0),
    ...pieces.map((each) => piece(0, each)),
    end(0, whole),
    finish(),
  ];

  it.each([
    [["{}"]],
    [["{ }"]],
    [["{\n}"]],
    [["{", "}"]],
    [["{", " ", "}"]],
    [["null"]],
    [["{}", "{}"]],
    [["", "{}", ""]],
    [["{}", "\n"]],
  ])("passes the real input without the placeholder before it, sent as %j", (before) => {
    const out = relayed(stream([...before, one, two], real));
    expect(joined(out)).toEqual([real]);
    // Nothing but the placeholder changes.
    const emptied = stream([...before.map(() => ""), one, two], real);
    expect(out).toBe(emptied.join(""));
  });

  it.each([
    [["{}"], "{}"],
    [["{ }"], "{ }"],
    [["{", "}"], "{}"],
    [["null"], "null"],
    [["{", '"city":"Zürich"}'], real],
    [["{", "\n", '"city":"Zürich"}'], '{\n"city":"Zürich"}'],
    [[" ", one, two], ` ${real}`],
    [[one, two], real],
  ])("passes an input that is sent as %j byte for byte", (pieces, whole) => {
    const events = stream(pieces, whole);
    expect(relayed(events)).toBe(events.join(""));
  });

  it("holds back no more than the event that may be a placeholder, until the next one", () => {
    const events = stream(["{}", one, two], real);
    expect(passed(events).map((each) => each.length > 0)).toEqual([
      true,
      false,
      true,
      true,
      ...events.slice(4).map((each) => each !== ""),
      false,
    ]);
  });

  it("decides parallel calls by their order: the input of a later call ends the earlier ones", () => {
    const begin = [head(0), piece(0, "{}"), head(1), piece(1, "{}")];
    const ends = (...whole: string[]) => [...whole.map((each, at) => end(at, each)), finish()];
    const inputs = (...pieces: string[]) => joined(relayed([...begin, ...pieces]));
    expect(inputs(piece(1, real), ...ends("{}", real))).toEqual(["{}", real]);
    expect(inputs(piece(0, real), piece(1, real), ...ends(real, real))).toEqual([real, real]);
    expect(inputs(piece(0, real), ...ends(real, "{}"))).toEqual([real, "{}"]);
    expect(inputs(...ends("{}", "{}"))).toEqual(["{}", "{}"]);
  });

  it("takes `{}` for the input where a text follows, and passes all in order", () => {
    const events = [head(0), piece(0, "{}"), text, text, finish()];
    expect(relayed(events)).toBe(events.join(""));
    expect(passed(events)[2]).not.toBe("");
  });

  it("passes what waits if the stream is cut, stopped or fails", () => {
    const begun = [head(0), piece(0, "{}")];
    const open = () => {
      const relay = style.relayStream(optionsOf({}));
      const out = begun.map((each) => relay.push([Buffer.from(each)]).toString()).join("");
      expect(out).toBe(begun[0]);
      return relay;
    };
    expect(open().end().toString()).toBe(begun[1]);
    expect(open().stop(undefined).toString().startsWith(String(begun[1]))).toBe(true);
    const failure = new GatewayError(ErrorCode.UPSTREAM_ERROR, "broken");
    expect(open().errorEvent(failure).toString().startsWith(String(begun[1]))).toBe(true);
    const failed = open().push([
      Buffer.from(event({ type: "error", error: { type: "overloaded_error", message: "x" } })),
    ]);
    expect(failed.toString().startsWith(String(begun[1]))).toBe(true);
    expect(failed.toString()).toContain('"error"');
  });
});

describe("the other places of an input", () => {
  const relayed = (events: readonly string[]): string =>
    responses
      .relayStream(optionsOf({}))
      .push([Buffer.from(events.join(""))])
      .toString();

  it("the last event of a response has the input without its placeholder, if the relay writes it", () => {
    const out = relayed([items.head(0), items.piece(0, "{}"), items.piece(0, real), completed([])]);
    expect(out).toContain(`"output":[${JSON.stringify(call(0, real))}]`);
    const relay = responses.relayStream(optionsOf({}));
    relay.push([Buffer.from(items.head(0) + items.piece(0, "{}") + items.piece(0, real))]);
    const stopped = relay.stop(undefined).toString();
    expect(stopped.split(`"arguments":${JSON.stringify(real)}`)).toHaveLength(4);
  });

  it("a placeholder is emptied if only the end of the call has the real input", () => {
    const events = [items.head(0), items.piece(0, "{}"), items.end(0, real), items.finish()];
    const emptied = [items.head(0), items.piece(0, ""), items.end(0, real)];
    expect(relayed(events).startsWith(emptied.join(""))).toBe(true);
  });

  it.each(["{}", "{ }", "{\n}", "null"])(
    "a call that is announced with %j has no arguments before the real ones",
    (placeholder) => {
      const begun = (text: string): string =>
        event({ type: "response.output_item.added", output_index: 0, item: call(0, text) });
      const real1 = [items.piece(0, one), items.piece(0, two), items.end(0, real)].join("");
      expect(relayed([begun(placeholder), real1])).toBe(begun("") + real1);
      const none = [begun(placeholder), items.end(0, placeholder), completed([{}])];
      expect(relayed(none)).toBe(none.join(""));
    },
  );

  it("calls of one chunk are decided one by one, each choice by itself", () => {
    const both = (first: string, second: string) =>
      chunk({
        tool_calls: [
          { index: 0, id: "a", function: { name: "f", arguments: first } },
          { index: 1, id: "b", function: { name: "{}", arguments: second } },
        ],
      });
    const other = `data: ${JSON.stringify({ choices: [{ index: 1, delta: { content: "x" }, finish_reason: null }] })}\n\n`;
    const relay = chatCompletions.relayStream({ ...optionsOf({}), choices: 2 });
    const push = (each: string): string => relay.push([Buffer.from(each)]).toString();
    expect(push(both("{}", "{}"))).toBe("");
    expect(push(other)).toBe("");
    const last = chat.piece(1, real);
    expect(push(last)).toBe(both("{}", "") + other + last);
  });
});
