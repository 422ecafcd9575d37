import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { responses as style } from "../../../../src/dialect/responses/dialect.ts";
import { read, refusal, sentBody, unknownMembers } from "../relaying.ts";

const ask = { model: "m", input: "hi" };

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
      '{ "client_metadata":{"a":2.50}, "tools":[{"type":"namespace","tools":[]}],\r\n"model" : "\\u006d" ,"input":[ {"role":"developer","content":"\\u0041","internal_chat_message_metadata_passthrough":{}} ], "stream" : true, "store":false, "y":1e400 }';
    expect(sentBody(read(style, body), "m")).toBe(body);
    expect(sentBody(read(style, body), "v")).toBe(body.replace(String.raw`"\u006d"`, '"v"'));
  });
});

describe("what routing and billing need", () => {
  it("is the model, whether it streams, and the most tokens", () => {
    expect(read(style, ask)).toMatchObject({ model: "m", stream: false, choices: 1 });
    expect(read(style, ask).maxOutputTokens).toBeUndefined();
    const limited = { ...ask, stream: true, max_output_tokens: 64 };
    expect(read(style, limited)).toMatchObject({ stream: true, maxOutputTokens: 64 });
  });

  it("leaves to the vendor what input there must be", () => {
    for (const input of [undefined, null, "", []]) {
      expect(read(style, { model: "m", input, previous_response_id: "resp_1" }).model).toBe("m");
    }
    const nulls = { previous_response_id: null, max_output_tokens: null, background: false };
    expect(read(style, { ...ask, ...nulls }).maxOutputTokens).toBeUndefined();
  });

  it("reports whether the request is in the background", () => {
    const read1 = (background: unknown) => read(style, { ...ask, background }).isBackground;
    expect([true, false, null, undefined].map(read1)).toEqual([true, false, false, false]);
  });

  it("streams where the route always streams", () => {
    const request = read(style, ask, { alwaysStream: true });
    expect(JSON.parse(sentBody(request, "v"))).toEqual({ ...ask, model: "v", stream: true });
  });
});

describe("R-ERR-7: bad bodies are refused by name", () => {
  it.each([
    ["model", { input: "hi" }],
    ["model", { ...ask, model: ["m"] }],
    ["input", { ...ask, input: 1 }],
    ["input", { ...ask, input: {} }],
    ["stream", { ...ask, stream: 1 }],
    ["max_output_tokens", { ...ask, max_output_tokens: 0 }],
    ["max_output_tokens", { ...ask, max_output_tokens: "64" }],
    ["previous_response_id", { ...ask, previous_response_id: 1 }],
    ["background", { ...ask, background: 1 }],
    ["model", '{"model":"a","input":"","model":"b"}'],
    ["max_output_tokens", '{"model":"a","max_output_tokens":1,"max_output_tokens":99}'],
    ["MODEL", { ...ask, MODEL: "dearer" }],
    ["Background", { ...ask, Background: true }],
  ])("a bad body is refused by the name %s: %j", (param, body) => {
    expect(refusal(style, body)).toMatchObject({ param, meaning: { status: 400 } });
  });
});
