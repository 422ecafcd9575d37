/** Sources of a search by Gemini reach every client, at any position in the reply. */
import { describe, expect, it } from "vitest";
import { chunk } from "../gemini/reply.ts";
import { answer, answerStreamed, type Caller, type Got, stream } from "./translation.ts";

const uri = "https://a.example";
const candidate = {
  finishReason: "STOP",
  groundingMetadata: { groundingChunks: [{ web: { uri, title: "A" } }] },
};
const said = { text: "One" };
const signature = { text: "", thoughtSignature: "U0lHMQ==" };
const call = { functionCall: { name: "f", args: {} } };

/** Parts of one chunk with sources. */
const places: Readonly<Record<string, object[]>> = {
  "behind a text": [said],
  "behind a signature": [said, signature],
  "in a text with a signature": [{ ...said, thoughtSignature: "U0lHMQ==" }],
  "behind a call": [said, { ...call, thoughtSignature: "U0lHMQ==" }],
  "without a text": [call],
  "without parts": [],
};

/** The addresses that a client gets, in the members of its style. */
const inReply: Readonly<Record<Caller, (body: Got["body"]) => unknown[]>> = {
  chat: ({ choices }) =>
    (choices[0].message.annotations ?? []).map((each: Got["body"]) => each.url_citation.url),
  responses: ({ output }) =>
    output
      .flatMap(({ content }: Got["body"]) => content ?? [])
      .flatMap(({ annotations }: Got["body"]) => annotations ?? [])
      .map(({ url }: Got["body"]) => url),
  messages: ({ content }) =>
    content
      .flatMap(({ citations }: Got["body"]) => citations ?? [])
      .map(({ url }: Got["body"]) => url),
};

const inStream: Readonly<Record<Caller, (events: Got["events"]) => unknown[]>> = {
  chat: (events) =>
    events
      .flatMap(({ choices }) => choices[0]?.delta.annotations ?? [])
      .map((each) => each.url_citation.url),
  responses: (events) =>
    events
      .filter(({ type }) => type === "response.output_text.annotation.added")
      .map(({ annotation }) => annotation.url),
  messages: (events) =>
    events
      .filter(({ delta }) => delta?.type === "citations_delta")
      .map(({ delta }) => delta.citation.url),
};

describe.each(["chat", "responses", "messages"] as const)("sources for a %s client", (to) => {
  const way = { from: "gemini", to } as const;

  it.each(Object.entries(places))("%s are told once", (_where, parts) => {
    const reply = chunk(parts, { candidate }) as Got["body"];
    const whole = answer(way, reply);
    expect([inReply[to](whole.body), whole.dropped.includes("citations")]).toEqual([[uri], false]);
    for (const got of [answerStreamed(way, reply), stream(way, [reply])]) {
      expect([inStream[to](got.events), got.dropped.includes("citations")]).toEqual([[uri], false]);
    }
  });

  it.each<[string, object[]]>([
    ["a chunk of their own", [chunk([said]), chunk([], { candidate })]],
    ["a chunk with an empty text", [chunk([said]), chunk([{ text: "" }], { candidate })]],
    ["a last chunk without content", [chunk([said]), { candidates: [candidate] }]],
    [
      "a chunk before the text",
      [
        chunk([], { candidate: { ...candidate, finishReason: "" } }),
        chunk([said], { finish: "STOP" }),
      ],
    ],
    ["a chunk behind a signature's", [chunk([said, signature]), chunk([], { candidate })]],
    ["a chunk behind a call's", [chunk([said, call]), chunk([], { candidate })]],
  ])("in %s are told once", (_where, chunks) => {
    const got = stream(way, chunks);
    expect([inStream[to](got.events), got.dropped.includes("citations")]).toEqual([[uri], false]);
  });

  it("without a text are the text of a block of messages, and of no other style", () => {
    const { body } = answer(way, chunk([], { candidate }) as Got["body"]);
    const texts: Readonly<Record<Caller, () => unknown>> = {
      chat: () => body.choices[0].message.content,
      responses: () => body.output[0].content[0].text,
      messages: () => body.content[0].text,
    };
    expect(texts[to]()).toBe(to === "messages" ? `[A](${uri})` : "");
  });
});
