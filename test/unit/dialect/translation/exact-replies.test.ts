/**
 * Text of a model and its vendor reaches the client byte for byte, except for white space between
 * tokens (R-TXT-14).
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { memberOf, withoutSpace } from "../../../../src/wire/json/source.ts";
import { anyObject, type SpelledJson } from "../../wire/json/arbitrary.ts";
import { chunk } from "./replies.ts";
import {
  answer,
  answerStreamed,
  type Caller,
  type Got,
  stream,
  type Vendor,
} from "./translation.ts";

const text = JSON.stringify;

/** A call of a model with these arguments. */
interface CalledReply {
  readonly whole: string;
  readonly events: readonly string[];
}

/** Replies in which each style's vendors write arguments as JSON, or as its text. */
const replies: Readonly<Record<Vendor, (args: SpelledJson) => CalledReply>> = {
  gemini: ({ spaced }) => {
    const part = `{"functionCall":{"name":"f","args": ${spaced}}}`;
    const reply = `{"candidates":[{"content":{"parts":[${part}]},"finishReason":"STOP"}],"responseId":"r"}`;
    return { whole: reply, events: [reply] };
  },
  messages: ({ spaced }) => {
    const block = `{"type":"tool_use","id":"toolu_1","name":"f","input": ${spaced}}`;
    return {
      whole: `{"id":"msg_1","content":[${block}],"stop_reason":"tool_use"}`,
      // Some compatible vendors send the input only with the start of the block.
      events: [
        '{"type":"message_start","message":{"id":"msg_1"}}',
        `{"type":"content_block_start","index":0,"content_block":${block}}`,
        '{"type":"content_block_stop","index":0}',
        '{"type":"message_delta","delta":{"stop_reason":"tool_use"}}',
        '{"type":"message_stop"}',
      ],
    };
  },
  chat: ({ spaced }) => {
    // Some compatible vendors write an object.
    const calls = `"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments": ${spaced}}}]`;
    return {
      whole: `{"choices":[{"message":{"role":"assistant","content":null,${calls}},"finish_reason":"tool_calls"}]}`,
      events: [
        `{"choices":[{"index":0,"delta":{${calls}}}]}`,
        text(chunk({}, "tool_calls")),
        "[DONE]",
      ],
    };
  },
  responses: ({ tight }) => {
    const item = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":${text(tight)}}`;
    const completed = `{"id":"resp_1","status":"completed","output":[${item}]}`;
    return {
      whole: completed,
      events: [
        `{"type":"response.output_item.done","output_index":0,"item":${item}}`,
        `{"type":"response.completed","response":${completed}}`,
      ],
    };
  },
};

/** The arguments in a whole reply. */
const inReply: Readonly<Record<Caller, (got: Got) => string>> = {
  chat: ({ body }) => body.choices[0].message.tool_calls[0].function.arguments,
  responses: ({ body }) => body.output[0].arguments,
  // The first element of a list: its own text.
  messages: ({ text: json }) => memberOf(memberOf(json, "content").slice(1, -1), "input"),
};

/** The arguments in a stream: added up, and where they are repeated whole. */
const inStream: Readonly<Record<Caller, (got: Got) => readonly string[]>> = {
  chat: ({ events }) => [
    events
      .flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
      .map((call) => call.function.arguments)
      .join(""),
  ],
  responses: ({ events }) => [
    events
      .filter(({ type }) => type === "response.function_call_arguments.delta")
      .map(({ delta }) => delta)
      .join(""),
    ...events
      .filter(({ type }) => type === "response.output_item.done")
      .map(({ item }) => item.arguments),
    events.at(-1).response.output[0].arguments,
  ],
  messages: ({ events }) => [events.map(({ delta }) => delta?.partial_json ?? "").join("")],
};

const ways = (["chat", "responses", "messages"] as const).flatMap((to) =>
  (["chat", "responses", "messages", "gemini"] as const).map((from) => ({ from, to })),
);

describe.each(ways)("arguments of a $from vendor's reply to a $to client", (way) => {
  it("are the same text in a whole reply, in a stream, and in a whole reply that is streamed", () => {
    fc.assert(
      fc.property(anyObject, (args) => {
        const { whole, events: written } = replies[way.from](args);
        // White space between tokens; a line break would end the event.
        const events = written.map((event) => event.replaceAll(/[\r\n]/g, " "));
        expect(inReply[way.to](answer(way, whole))).toBe(args.tight);
        const streams = [answerStreamed(way, whole), stream(way, events)];
        for (const got of streams) {
          const told = inStream[way.to](got);
          expect(told.map(withoutSpace)).toEqual(told.map(() => args.tight));
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe("blocks that only one style has", () => {
  const block = ({ spaced }: SpelledJson): string =>
    `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":${spaced},"x": 1.10}`;

  it("of messages keep the text of their input and of all members, from a vendor of messages to its client", () => {
    fc.assert(
      fc.property(anyObject, (args) => {
        const way = { from: "messages", to: "messages" } as const;
        const whole = `{"id":"msg_1","content":[${block(args)}],"stop_reason":"end_turn"}`;
        const tight = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":${args.tight},"x":1.10}`;
        expect(memberOf(answer(way, whole).text, "content")).toBe(`[${tight}]`);
        const half = Math.floor(args.tight.length / 2);
        const deltas = [args.tight.slice(0, half), args.tight.slice(half)].map(
          (piece) =>
            `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":${text(piece)}}}`,
        );
        const empty = block({ spaced: "{}", tight: "{}" });
        const events = [
          `{"type":"content_block_start","index":0,"content_block":${empty}}`,
          ...deltas,
          '{"type":"content_block_stop","index":0}',
          '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
          '{"type":"message_stop"}',
        ];
        const got = stream(way, ['{"type":"message_start","message":{"id":"msg_1"}}', ...events]);
        expect(inStream.messages(got)).toEqual([args.tight]);
        expect(got.text).toContain('"x":1.10}');
      }),
      { numRuns: 40 },
    );
  });

  it("of responses keep their text, from a vendor of responses to its client", () => {
    fc.assert(
      fc.property(anyObject, (value) => {
        const way = { from: "responses", to: "responses" } as const;
        const item = (json: string): string =>
          `{"type":"mcp_call","id":"mcp_1","name":"f","arguments":"{}","output":${json},"x":1.10}`;
        const whole = `{"id":"resp_1","status":"completed","output":[ ${item(value.spaced)}]}`;
        const written = item(value.tight);
        expect(memberOf(answer(way, whole).text, "output")).toBe(`[${written}]`);
        const got = stream(way, [
          `{"type":"response.output_item.done","output_index":0,"item":${item(value.tight)}}`,
          `{"type":"response.completed","response":${whole.replaceAll(/[\r\n]/g, " ")}}`,
        ]);
        expect(got.text.split(`"item":${written}`)).toHaveLength(3);
        expect(got.text).toContain(`"output":[${written}]`);
      }),
      { numRuns: 40 },
    );
  });
});
