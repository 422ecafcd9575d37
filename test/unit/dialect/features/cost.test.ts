/** The bytes of replies that report their cost (R-TXT-12). */
import { describe, expect, it } from "vitest";
import { CostStream, writeReplyCost } from "../../../../src/dialect/features/cost.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { messages } from "../../../../src/dialect/messages/dialect.ts";
import { responses } from "../../../../src/dialect/responses/dialect.ts";

const chat = chatCompletions.usageEvents;

function whole(body: string): string {
  return writeReplyCost(Buffer.from(body), chat, "0.000000001").toString();
}

/** Returns the output for each piece; the cost is known with the last. */
function streamed(pieces: readonly string[], events = chat): string[] {
  const stream = new CostStream(events);
  return pieces.map((piece, at) => {
    const cost = at === pieces.length - 1 ? "1.25" : undefined;
    return stream.write(Buffer.from(piece), cost).toString();
  });
}

describe("a complete reply", () => {
  it.each([
    [
      '{"usage":{"total_tokens":3},"id":"a"}',
      '{"usage":{"total_tokens":3,"cost":0.000000001},"id":"a"}',
    ],
    ['{ "usage" : { } }', '{ "usage" : { "cost":0.000000001} }'],
    ['{"usage":{"cost":7.5,"n":1}}', '{"usage":{"cost":0.000000001,"n":1}}'],
    ['{"usage":{"cost":null}}', '{"usage":{"cost":0.000000001}}'],
    [
      '{"text":"\\"usage\\":{}","usage":{"n":"}"}}',
      '{"text":"\\"usage\\":{}","usage":{"n":"}","cost":0.000000001}}',
    ],
  ])("a complete reply has the cost in its usage: %s", (body, told) => {
    expect(whole(body)).toBe(told);
    expect(() => JSON.parse(told)).not.toThrow();
  });

  it.each(['{"usage":null}', '{"id":"a"}', '{"usage":[1]}'])(
    "a complete reply without usage keeps every byte: %s",
    (body) => {
      expect(whole(body)).toBe(body);
    },
  );

  it("that is written as a stream has the cost in its last event with usage", () => {
    const body = 'data: {"usage":{"n":1}}\n\ndata: {"usage":{"n":2}}\n\ndata: [DONE]\n\n';
    const told = 'data: {"usage":{"n":1}}\n\ndata: {"usage":{"n":2,"cost":0.000000001}}\n\n';
    expect(whole(body)).toBe(`${told}data: [DONE]\n\n`);
  });
});

describe("a stream", () => {
  it("a stream holds back its event with usage, and nothing before it, until the cost is known", () => {
    const text = 'data: {"choices":[1],"usage":null}\r\n\r\n';
    const last = 'data: {"choices":[],"usage":{"n":1}}\r\n\r\n';
    expect(streamed([text, text + last, "data: [DONE]\r\n\r\n"])).toEqual([
      text,
      text,
      'data: {"choices":[],"usage":{"n":1,"cost":1.25}}\r\n\r\ndata: [DONE]\r\n\r\n',
    ]);
  });

  it("a stream with usage in each event has the cost in the last one only", () => {
    const events = [1, 2, 3].map((n) => `data: {"usage":{"n":${n}}}\n\n`);
    const all = streamed([...events, "data: [DONE]\n\n"]).join("");
    expect(all.match(/"cost"/g)).toHaveLength(1);
    expect(all).toContain('{"n":3,"cost":1.25}');
    expect(all.replace(',"cost":1.25', "")).toBe(`${events.join("")}data: [DONE]\n\n`);
  });

  it("a stream with usage long before its end is not held back", () => {
    const early = 'data: {"usage":{"n":1}}\n\n';
    const text = `data: {"text":"${"x".repeat(20_000)}"}\n\n`;
    expect(streamed([early, text, "data: [DONE]\n\n"])).toEqual([
      "",
      early + text,
      "data: [DONE]\n\n",
    ]);
  });

  it("a stream gives back what it held where the cost stays unknown", () => {
    const stream = new CostStream(chat);
    const event = Buffer.from('data: {"usage":{"n":1}}\n\n');
    expect(stream.write(event, undefined)).toHaveLength(0);
    expect(stream.rest(undefined).toString()).toBe(event.toString());
    expect(stream.rest("1")).toHaveLength(0);
  });

  it("a stream of messages has the cost in message_delta, not in message_start", () => {
    const start = 'data: {"type":"message_start","usage":{},"message":{"usage":{"n":1}}}\n\n';
    const delta = 'data: {"type":"message_delta","usage":{"n":1}}\n\n';
    expect(streamed([start, delta], messages.usageEvents)).toEqual([
      start,
      'data: {"type":"message_delta","usage":{"n":1,"cost":1.25}}\n\n',
    ]);
  });

  it("a stream of responses has the cost in the response of its last event", () => {
    const begun = 'data: {"type":"response.created","response":{"usage":{"n":0}}}\n\n';
    const done = 'data: {"type":"response.incomplete","usage":{},"response":{"usage":{"n":1}}}\n\n';
    expect(streamed([begun + done], responses.usageEvents)).toEqual([
      begun + done.replace('{"n":1}', '{"n":1,"cost":1.25}'),
    ]);
  });
});
