import { describe, expect, it } from "vitest";
import { type Caller, type Json, stream, type Vendor, waysBack } from "./translation.ts";
import { hiStreams } from "./replies.ts";

/** End of a stream in each style, and events that it must not contain. */
const terminals: Readonly<Record<Caller, { last: RegExp; never: RegExp }>> = {
  chat: { last: /\ndata: \[DONE\]\n\n$/, never: /^event: /m },
  responses: { last: /\nevent: response\.completed\ndata: .*\n\n$/, never: /\[DONE\]/ },
  messages: {
    last: /\nevent: message_stop\ndata: \{"type":"message_stop"\}\n\n$/,
    never: /\[DONE\]/,
  },
};

/** If the last event has the end and the text: without the end. */
const cut: Readonly<Partial<Record<Vendor, readonly unknown[]>>> = {
  chat: hiStreams.chat.slice(0, 1),
  gemini: [{ candidates: [{ content: { parts: [{ text: "hi" }] } }] }],
};

describe("wire §3, terminal: each style's own, once and last", () => {
  it.each(waysBack)(
    "a stream ends in the caller's style, once and last: $from → $to",
    ({ from, to }) => {
      const { text } = stream({ from, to }, hiStreams[from]);
      expect(text).toMatch(terminals[to].last);
      expect(text).not.toMatch(terminals[to].never);
      expect(text).toContain("hi");
    },
  );

  it.each(waysBack)("$from → $to: none where the vendor's stream was cut", ({ from, to }) => {
    const begun = cut[from] ?? hiStreams[from].slice(0, 2);
    expect(stream({ from, to }, begun).text).not.toMatch(terminals[to].last);
  });
});

const overloaded: Readonly<Record<Vendor, Json>> = {
  chat: { error: { message: "Busy.", type: "server_error", code: "overloaded" } },
  responses: {
    type: "error",
    sequence_number: 3,
    error: { type: "server_error", code: "server_is_overloaded", message: "Busy.", param: null },
  },
  messages: { type: "error", error: { type: "overloaded_error", message: "Busy." } },
  gemini: { error: { code: 503, message: "Busy.", status: "UNAVAILABLE" } },
};

const errors: Readonly<Record<Caller, Json>> = {
  chat: { error: { message: "Busy.", code: "upstream_overloaded" } },
  responses: {
    type: "error",
    message: "Busy.",
    code: "upstream_overloaded",
    sequence_number: expect.any(Number),
    error: { message: "Busy." },
  },
  messages: {
    type: "error",
    error: {
      type: "overloaded_error",
      message: "Busy.",
      details: { error_code: "upstream_overloaded" },
    },
  },
};

describe("wire §3, errors mid-stream: the vendor's, in the caller's form, and nothing behind it (R-ERR-6)", () => {
  it.each(waysBack)(
    "an error in the middle of a stream is reported in the caller's form, and nothing follows: $from → $to",
    ({ from, to }) => {
      const [first] = hiStreams[from];
      const { text, events } = stream({ from, to }, [first, overloaded[from], ...hiStreams[from]]);
      expect(events.at(-1)).toMatchObject(errors[to]);
      expect(text).not.toMatch(terminals[to].last);
      if (to !== "chat") expect(text).toMatch(/\nevent: error\ndata: [^\n]*\n\n$/);
    },
  );
});
