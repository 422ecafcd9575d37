/** Streams of vendors that leave out, repeat or contradict what a responses stream should have. */
import { describe, expect, it } from "vitest";
import { responses as style } from "../../../../src/dialect/responses/dialect.ts";
import type { GenerateEvent } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { relayed } from "../relaying.ts";

type Event = Readonly<Record<string, unknown>> & { readonly type: string };

const stream = (...events: readonly Event[]): string =>
  events.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`).join("");

/** An event without these members. */
function without(event: Event, ...names: readonly string[]): Event {
  return Object.fromEntries(
    Object.entries(event).filter(([name]) => !names.includes(name)),
  ) as Event;
}

/** The parts of a decoded stream: calls as `name(input)`, texts as they are. */
function partsOf(text: string): string[] {
  const decoder = style.decodeStream();
  const events: GenerateEvent[] = [...decoder.push([Buffer.from(text)]), ...decoder.end()];
  const parts = new Map<number, string>();
  const ends = new Map<number, string>();
  for (const { kind } of events) {
    if (kind.case === "partStart") {
      const { part, index } = kind.value;
      const call = part?.kind.case === "toolCall" ? part.kind.value : undefined;
      parts.set(index, call === undefined ? "" : `${call.name}(`);
      ends.set(index, call === undefined ? "" : ")");
    } else if (kind.case === "partDelta") {
      const { index, delta } = kind.value;
      const isText = delta.case === "text" || delta.case === "input" || delta.case === "summary";
      if (isText) parts.set(index, `${parts.get(index)}${delta.value}`);
    }
  }
  return [...parts].map(([index, each]) => `${each}${ends.get(index)}`);
}

const call = (id: string, callId: string, name: string, input = "") => ({
  type: "function_call",
  id,
  call_id: callId,
  name,
  arguments: input,
});
const completed = (output: unknown): Event => ({
  type: "response.completed",
  response: { id: "resp_1", status: "completed", output },
});
const message = (text: string) => ({
  type: "message",
  id: "msg_1",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
});

describe("values that only a later event has", () => {
  const added: Event = {
    type: "response.output_item.added",
    output_index: 0,
    item: call("fc_1", "call_1", "read"),
  };
  const argumentsDone: Event = {
    type: "response.function_call_arguments.done",
    item_id: "fc_1",
    output_index: 0,
    arguments: '{"path":"a"}',
  };
  const itemDone: Event = {
    type: "response.output_item.done",
    output_index: 0,
    item: call("fc_1", "call_1", "read", '{"path":"a"}'),
  };
  const delta = (text: string): Event => ({
    type: "response.function_call_arguments.delta",
    item_id: "fc_1",
    output_index: 0,
    delta: text,
  });
  const whole = completed([call("fc_1", "call_1", "read", '{"path":"a"}')]);

  it.each([
    ["the arguments' done event", [added, argumentsDone, whole]],
    ["the item's done event", [added, itemDone, whole]],
    ["the final output", [added, whole]],
    ["the final output only", [whole]],
    [
      "deltas, and all later events again",
      [added, delta('{"path"'), delta(':"a"}'), argumentsDone, itemDone, whole],
    ],
    ["deltas that are cut, and the done event", [added, delta('{"pa'), argumentsDone, whole]],
    [
      "an empty object at the start, then deltas",
      [{ ...added, item: call("fc_1", "call_1", "read", "{}") }, delta('{"path":"a"}'), whole],
    ],
    [
      "an empty object at the start, then the done event",
      [{ ...added, item: call("fc_1", "call_1", "read", "{}") }, argumentsDone],
    ],
    [
      "a name that comes with the done event",
      [{ ...added, item: call("fc_1", "call_1", "") }, delta('{"path":"a"}'), itemDone, whole],
    ],
    ["an item that is done twice", [added, itemDone, itemDone, whole]],
  ] as const)("are read once: %s", (_name, events) => {
    const ends = events.at(-1) === whole ? [] : [completed([])];
    expect(partsOf(stream(...events, ...ends))).toEqual(['read({"path":"a"})']);
  });

  it.each([
    ["text", "output_text", { text: "One two" }],
    ["refusal", "refusal", { refusal: "One two" }],
    ["reasoning text", "reasoning_text", { text: "One two" }],
    ["reasoning summary", "reasoning_summary_text", { text: "One two", summary_index: 0 }],
  ])("%s of a done event is read, with and without deltas", (_name, kind, value) => {
    const type = kind.startsWith("reasoning") ? "reasoning" : "message";
    const place = { item_id: "it_1", output_index: 0, content_index: 0 };
    const begin: Event = {
      type: "response.output_item.added",
      output_index: 0,
      item: { type, id: "it_1" },
    };
    const done: Event = { type: `response.${kind}.done`, ...place, ...value };
    const part: Event = { type: `response.${kind}.delta`, ...place, ...value, delta: "One " };
    expect(partsOf(stream(begin, done, completed([])))).toEqual(["One two"]);
    expect(partsOf(stream(begin, part, done, completed([])))).toEqual(["One two"]);
    expect(partsOf(stream(begin, part, { ...part, delta: "two" }, done, completed([])))).toEqual([
      "One two",
    ]);
  });
});

describe("items that their events identify badly", () => {
  const events = (strip: (event: Event) => Event): string => {
    const all: Event[] = ["a", "b"].flatMap((name, at): Event[] => [
      {
        type: "response.output_item.added",
        output_index: at,
        item: call(`fc_${name}`, `call_${name}`, name),
      },
      {
        type: "response.function_call_arguments.delta",
        output_index: at,
        item_id: `fc_${name}`,
        delta: `{"${name}":1}`,
      },
      {
        type: "response.function_call_arguments.done",
        output_index: at,
        item_id: `fc_${name}`,
        arguments: `{"${name}":1}`,
      },
      {
        type: "response.output_item.done",
        output_index: at,
        item: call(`fc_${name}`, `call_${name}`, name, `{"${name}":1}`),
      },
    ]);
    const output = ["a", "b"].map((name) =>
      call(`fc_${name}`, `call_${name}`, name, `{"${name}":1}`),
    );
    return stream(...[...all, completed(output)].map(strip));
  };
  let count = 0;
  it.each([
    ["with everything", (event: Event) => event],
    ["without output_index", (event: Event) => without(event, "output_index")],
    ["with output_index 0 everywhere", (event: Event) => ({ ...event, output_index: 0 })],
    ["without item_id", (event: Event) => without(event, "item_id")],
    ["without either", (event: Event) => without(event, "item_id", "output_index")],
    [
      "with an id that changes in every event",
      (event: Event): Event => {
        const id = `id_${count++}`;
        const item = event["item"] as object | undefined;
        return {
          ...event,
          ...(item !== undefined && { item: { ...item, id } }),
          ...("item_id" in event && { item_id: id }),
        };
      },
    ],
    [
      "with the response's id in all items",
      (event: Event): Event => {
        const item = event["item"] as object | undefined;
        return {
          ...event,
          ...(item !== undefined && { item: { ...item, id: "resp_1" } }),
          ...("item_id" in event && { item_id: "resp_1" }),
        };
      },
    ],
  ])("give each call once: %s", (_name, strip) => {
    expect(partsOf(events(strip))).toEqual(['a({"a":1})', 'b({"b":1})']);
  });

  it("items that share an id, and arrive only when they are done, keep their order", () => {
    const items = [
      call("resp_1", "call_a", "a", "{}"),
      call("resp_1", "call_b", "b", "{}"),
      message("Done"),
    ].map((item) => ({ ...item, id: "resp_1" }));
    const done = items.map((item, at) => ({
      type: "response.output_item.done",
      output_index: at,
      item,
    }));
    expect(partsOf(stream(...done, completed(items)))).toEqual(["a({})", "b({})", "Done"]);
  });

  it("a text that nothing announced is the message of the output, under whatever id", () => {
    const text = stream(
      { type: "response.output_text.done", output_index: 0, item_id: "msg_9", text: "One two" },
      completed([message("One two")]),
    );
    expect(partsOf(text)).toEqual(["One two"]);
  });

  it("a message without any identity is one text", () => {
    const text = stream(
      { type: "response.output_item.added", item: { type: "message", role: "assistant" } },
      { type: "response.output_text.delta", delta: "One " },
      { type: "response.output_text.delta", delta: "two" },
      { type: "response.output_text.done", text: "One two" },
      { type: "response.output_item.done", item: { ...message("One two"), id: undefined } },
      completed([message("One two")]),
    );
    expect(partsOf(text)).toEqual(["One two"]);
  });
});

describe("a last event without its output", () => {
  const items: Event[] = [
    { type: "response.created", response: { id: "resp_1", model: "vendor-model", output: [] } },
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { type: "message", id: "msg_1", status: "in_progress", role: "assistant", content: [] },
    },
    {
      type: "response.output_text.delta",
      output_index: 0,
      item_id: "msg_1",
      content_index: 0,
      delta: "One two",
    },
  ];
  const done: Event = {
    type: "response.output_item.done",
    output_index: 0,
    item: { ...message("One two"), status: "completed" },
  };

  it.each([
    ["an empty list", { output: [] }],
    ["null", { output: null }],
    ["no member", {}],
  ])("%s: the relay writes the items that came into it", (_name, output) => {
    const last: Event = {
      type: "response.completed",
      response: { id: "resp_1", model: "vendor-model", ...output },
    };
    for (const events of [
      [...items, done, last],
      [...items, last],
      [...items, done, last].map((each) => without(each, "output_index")),
    ]) {
      const { text } = relayed(style, stream(...events), { model: "public" });
      const final = JSON.parse(/data: (.*"response\.completed".*)\n/.exec(text)?.[1] ?? "") as {
        response: { model: string; output: { content: { text: string }[] }[] };
      };
      expect(final.response.model).toBe("public");
      expect(final.response.output.map((each) => each.content[0]?.text)).toEqual(["One two"]);
    }
  });

  it("an output that is there passes byte for byte", () => {
    const text = stream(...items, done, completed([message("One two")]));
    expect(relayed(style, text).text).toBe(text);
  });
});
