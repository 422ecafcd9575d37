import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StopReason } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { UnreadableReplyError } from "../../../../src/wire/json/value.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { casesOf, chunk, counts, endOf, sse, streamed, whole } from "./reply.ts";

describe("streams", () => {
  const chunks = [
    chunk([{ text: "Hm ⟡", thought: true }], { usage: { promptTokenCount: 9 } }),
    chunk([{ text: "Grüße " }]),
    chunk([{ text: "🌍" }], { finish: "STOP" }),
    chunk([{ functionCall: { name: "f", args: { x: "ü" } }, thoughtSignature: "S1" }]),
    chunk([], { finish: "STOP", usage: { ...counts, candidatesTokenCount: 7 } }),
  ];

  it("return their events in order, with the known usage first", () => {
    const events = streamed(sse(...chunks));
    expect(casesOf(events)).toEqual([
      "start",
      ...["partStart", "partDelta", "partEnd"],
      ...["partStart", "partDelta", "partDelta", "partEnd"],
      ...["partStart", "partDelta", "partEnd"],
      ...["partStart", "partDelta", "partEnd"],
      "end",
    ]);
    expect(events[0]?.kind.value).toMatchObject({ id: "resp", usage: { inputTokens: 9 } });
    const indexes = events.flatMap(({ kind }) =>
      kind.case === "partStart" ? [kind.value.index] : [],
    );
    expect(indexes).toEqual([0, 1, 2, 3]);
    expect(endOf(events)).toMatchObject({
      stopReason: StopReason.TOOL_CALLS,
      usage: { inputTokens: 9, outputTokens: 7 },
    });
  });

  it("may end with [DONE], as those of proxies do", () => {
    const body = sse(...chunks);
    const expected = streamed(body);
    expect(streamed(`${body}data: [DONE]\n\n`)).toEqual(expected);
    expect(streamed(`${body}data: [DONE]`)).toEqual(expected);
  });

  it("may lack the empty line at their end, also behind fields other than data", () => {
    const expected = streamed(sse(...chunks));
    const numbered = sse(...chunks).replaceAll("data: ", "id: 1\n: comment\ndata: ");
    expect(streamed(numbered.trimEnd())).toEqual(expected);
  });

  it("return the same wherever the bytes are cut, and for every line ending", () => {
    const body = sse(...chunks);
    const expected = streamed(body);
    const length = Buffer.byteLength(body);
    fc.assert(
      fc.property(
        fc.array(fc.nat(length), { maxLength: 40 }),
        fc.constantFrom("\r\n", "\n", "\r"),
        (cuts, newline) => {
          const other = body.replaceAll("\r\n", newline);
          const most = Buffer.byteLength(other);
          const events = streamed(
            other,
            cuts.map((cut) => Math.min(cut, most)),
          );
          // The vendor decides how a text is cut into deltas, so all cuts are equal.
          expect(events).toEqual(expected);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("say the same as the whole reply does", () => {
    const parts = [
      { text: "Hm", thought: true },
      { text: "A" },
      { functionCall: { name: "f" }, thoughtSignature: "S1" },
    ];
    const reply = whole(chunk(parts, { finish: "STOP" }));
    const events = streamed(
      sse(...parts.map((part) => chunk([part])), chunk([], { finish: "STOP" })),
    );
    const deltas = events.flatMap(({ kind }) =>
      kind.case === "partDelta" ? [kind.value.delta] : [],
    );
    expect(deltas.map(({ case: of, value }) => [of, value])).toMatchObject([
      ["text", "Hm"],
      ["text", "A"],
      ["seal", { signature: "S1" }],
      ["input", "{}"],
    ]);
    expect(reply.parts).toHaveLength(4);
    expect(endOf(events)).toMatchObject({ stopReason: reply.stopReason, usage: reply.usage });
  });

  it("streams have no end where they were cut", () => {
    const body = sse(chunk([{ text: "A" }]));
    expect(casesOf(streamed(body))).toEqual(["start", "partStart", "partDelta"]);
    const half = sse(chunk([{ text: "A" }]), chunk([], { finish: "STOP" })).slice(0, -40);
    expect(casesOf(streamed(half))).not.toContain("end");
    expect(streamed("")).toEqual([]);
  });

  it("streams may lack the last empty line, have comments, and lines of data to be joined", () => {
    const text = JSON.stringify(chunk([{ text: "A" }], { finish: "STOP" }), undefined, 1);
    const split = text.replaceAll(/^/gm, "data: ");
    for (const body of [`: hi\n\ndata: ${JSON.stringify(JSON.parse(text))}`, `${split}\n\n`]) {
      expect(endOf(streamed(body))).toMatchObject({ stopReason: StopReason.END });
    }
  });

  it.each([
    [400, ErrorCode.INVALID_REQUEST, "m"],
    [403, ErrorCode.SERVICE_UNAVAILABLE, "The model is temporarily out of service"],
    [429, ErrorCode.RATE_LIMIT_EXCEEDED, "m"],
    [503, ErrorCode.UPSTREAM_OVERLOADED, "m"],
    [504, ErrorCode.UPSTREAM_TIMEOUT, "m"],
    [500, ErrorCode.UPSTREAM_ERROR, "m"],
    ["?", ErrorCode.UPSTREAM_ERROR, "m"],
  ])("R-ERR-3 R-ERR-6 end with an error that stands in them: %s", (status, code, message) => {
    const error = { error: { code: status, message: "m", status: "X" } };
    const after = chunk([{ text: "B" }], { finish: "STOP" });
    const events = streamed(sse(chunk([{ text: "A" }]), error, after));
    expect(casesOf(events)).toEqual(["start", "partStart", "partDelta", "error"]);
    expect(endOf(events)).toMatchObject({ code, message });
  });

  it.each(["data: nope\n\n", "data: [1]\n\n"])("are unreadable where an event is: %j", (body) => {
    expect(() => streamed(body)).toThrow(UnreadableReplyError);
  });

  it("streams never throw anything else, whatever an event holds", () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 4 }),
        (values) => {
          streamed(sse(...values, chunk(values)));
          streamed(sse({ candidates: values, usageMetadata: values[0], error: values[1] }));
        },
      ),
    );
  });
});
