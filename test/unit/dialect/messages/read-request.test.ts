import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { messages as style } from "../../../../src/dialect/messages/dialect.ts";
import { read, refusal, sentBody, unknownMembers } from "../relaying.ts";

const messages = [{ role: "user", content: "hi" }];
const ask = { model: "m", max_tokens: 16, messages };

describe("R-TXT-1: a body in the vendor's own dialect passes byte for byte", () => {
  it("a body in the vendor's own dialect passes byte for byte but for the model name", () => {
    const anyBody = fc
      .record({ before: unknownMembers, after: unknownMembers, indent: fc.constantFrom(0, 2) })
      .map(({ before, after, indent }) =>
        JSON.stringify({ ...before, ...ask, model: "public", ...after }, null, indent),
      );
    fc.assert(
      fc.property(anyBody, (body) => {
        const sent = sentBody(read(style, body), "vendor/é");
        expect(sent).toBe(body.replace(/("model": ?)"public"/, '$1"vendor/é"'));
        expect(sentBody(read(style, body), "public")).toBe(body);
      }),
      { numRuns: 300 },
    );
  });

  it("keeps spelling, order, white space and unknown members", () => {
    const body =
      '{ "x":2.50, "thinking":{"type":"adaptive"},\r\n"model" : "\\u006d" ,"messages":[ {"role":"system","content":"\\u0041"} ], "stream" : false, "y":1e400 , "max_tokens" : 16 }';
    expect(sentBody(read(style, body), "m")).toBe(body);
    expect(sentBody(read(style, body), "v")).toBe(body.replace(String.raw`"\u006d"`, '"v"'));
  });

  it("a large body passes without a copy of what stays", () => {
    const data = "A".repeat(1_000_000);
    const body = JSON.stringify({ ...ask, system: data });
    const request = read(style, body);
    expect(sentBody(request, "vendor")).toBe(body.replace('"m"', '"vendor"'));
    expect(request.forVendor({ model: "vendor" }).length).toBeGreaterThan(1);
  });
});

describe("what routing and billing need", () => {
  it("is the model, whether it streams, and the most tokens", () => {
    expect(read(style, ask)).toMatchObject({
      model: "m",
      stream: false,
      maxOutputTokens: 16,
      choices: 1,
    });
    expect(read(style, { ...ask, stream: true }).stream).toBe(true);
    expect(read(style, ask).bytes).toBe(JSON.stringify(ask).length);
  });

  it("may be no tokens at all, to warm the cache only", () => {
    expect(read(style, { ...ask, max_tokens: 0 }).maxOutputTokens).toBe(0);
  });

  it("streams where the route always streams", () => {
    for (const stream of [undefined, false, null, true]) {
      const request = read(style, { ...ask, stream }, { alwaysStream: true });
      expect(request.stream).toBe(true);
      expect(JSON.parse(sentBody(request, "v"))).toEqual({ ...ask, model: "v", stream: true });
    }
  });
});

describe("R-ERR-7: bad bodies are refused by name", () => {
  it.each([
    ["model", { max_tokens: 1, messages }],
    ["model", { ...ask, model: 1 }],
    ["model", { ...ask, model: "" }],
    ["messages", { model: "m", max_tokens: 1 }],
    ["messages", { ...ask, messages: "hi" }],
    ["messages", { ...ask, messages: null }],
    ["max_tokens", { model: "m", messages }],
    ["max_tokens", { ...ask, max_tokens: null }],
    ["max_tokens", { ...ask, max_tokens: -1 }],
    ["max_tokens", { ...ask, max_tokens: 1.5 }],
    ["max_tokens", { ...ask, max_tokens: "9" }],
    ["stream", { ...ask, stream: "yes" }],
    ["model", '{"model":"a","max_tokens":1,"messages":[],"model":"b"}'],
    ["max_tokens", '{"model":"a","max_tokens":1,"messages":[],"max_tokens":99}'],
    ["Model", { ...ask, Model: "dearer" }],
    ["MAX_TOKENS", { ...ask, MAX_TOKENS: 100_000 }],
    ["me\u017f\u017fages", { ...ask, "me\u017f\u017fages": [] }],
  ])("a bad body is refused by the name %s: %j", (param, body) => {
    expect(refusal(style, body)).toMatchObject({ param, meaning: { status: 400 } });
  });

  it.each(["", "[]", "{", '{"model":"m"}x'])(
    "a body that is no JSON object is refused: %j",
    (body) => {
      expect(refusal(style, body).meaning.status).toBe(400);
    },
  );
});
