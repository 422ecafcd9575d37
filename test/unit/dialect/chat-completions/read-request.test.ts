import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import type { LimitParameter } from "../../../../src/dialect/codec.ts";
import { GatewayError } from "../../../../src/core/errors.ts";

const plain = { alwaysStream: false, platformAliases: false };
const messages = [{ role: "user", content: "hi" }];

function read(body: unknown, options: Partial<typeof plain> = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return chatCompletions.readRequest(Buffer.from(text), { ...plain, ...options });
}

/** Returns the body for a vendor. */
function sentBody(request: ReturnType<typeof read>, model: string): string {
  return Buffer.concat(request.forVendor({ model: model })).toString();
}

function refusal(body: unknown, options: Partial<typeof plain> = {}): GatewayError {
  try {
    read(body, options);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("was accepted");
}

describe("R-TXT-1: a body in the vendor's own dialect passes byte for byte", () => {
  const anyBody = fc
    .record({
      before: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 }),
      after: fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 3 }), {
        maxKeys: 3,
      }),
      indent: fc.constantFrom(undefined, 2),
    })
    .map(({ before, after, indent }) =>
      JSON.stringify({ ...before, model: "public", messages, ...after }, null, indent),
    );

  it("a body in the vendor's own dialect passes byte for byte but for the model name", () => {
    fc.assert(
      fc.property(anyBody, (body) => {
        // Members that the gateway reads, in upper or lower case, have separate tests.
        fc.pre(!/"(stream|max_tokens|n|stream_options|max_completion_tokens)"/iu.test(body));
        const sent = sentBody(read(body), "vendor/é");
        // Only the first `"model"` key at the top is a key with that very value.
        expect(sent).toBe(body.replace(/("model": ?)"public"/, '$1"vendor/é"'));
      }),
      { numRuns: 300 },
    );
  });

  it("keeps spelling, order, white space and unknown members", () => {
    const body =
      '{ "x":2.50, "big":12345678901234567890,\r\n"model" : "m" ,"messages":[ {"role":"user","content":"\\u0041"} ], "y":1e400}';
    expect(sentBody(read(body), "m")).toBe(body);
    expect(sentBody(read(body), "v")).toBe(body.replace('"m"', '"v"'));
  });

  it("a large body passes without a copy of what stays", () => {
    const picture = "A".repeat(1_000_000);
    const body = `{"model":"public","messages":[{"role":"user","content":"${picture}"}],"stream":true}`;
    const request = read(body);
    expect(sentBody(request, "vendor")).toBe(
      `${body.replace("public", "vendor").slice(0, -1)},"stream_options":{"include_usage":true}}`,
    );
    expect(request.forVendor({ model: "vendor" }).length).toBeGreaterThan(1);
  });

  it("asks for usage in streams, keeping what the client said there", () => {
    const ask = (extra: object) =>
      JSON.parse(sentBody(read({ model: "m", messages, stream: true, ...extra }), "m"));
    expect(ask({}).stream_options).toEqual({ include_usage: true });
    expect(ask({ stream_options: null }).stream_options).toEqual({ include_usage: true });
    expect(ask({ stream_options: { include_obfuscation: false } }).stream_options).toEqual({
      include_obfuscation: false,
      include_usage: true,
    });
    expect(ask({ stream_options: { include_usage: false } }).stream_options).toEqual({
      include_usage: true,
    });
    expect(
      JSON.parse(sentBody(read({ model: "m", messages }), "m")).stream_options,
    ).toBeUndefined();
  });

  it("knows whether the client asked for usage itself", () => {
    expect(
      read({ model: "m", messages, stream: true, stream_options: { include_usage: true } })
        .wantsUsage,
    ).toBe(true);
    expect(read({ model: "m", messages, stream: true }).wantsUsage).toBe(false);
  });
});

describe("R-TXT-5: the platform's names", () => {
  const aliases = { platformAliases: true };
  const sent = (body: unknown, options = {}) =>
    JSON.parse(sentBody(read(body, { ...aliases, ...options }), "v"));

  it("turn into the dialect's own", () => {
    expect(sent({ modelKey: "m", prompt: 'say "hi"\n' })).toEqual({
      model: "v",
      messages: [{ role: "user", content: 'say "hi"\n' }],
    });
    expect(read({ modelKey: "m", messages }, aliases).model).toBe("m");
  });

  it("the platform's names give way to the dialect's name, and leave no unknown member behind", () => {
    expect(sent({ modelKey: "m", model: "m", messages })).toEqual({ model: "v", messages });
    expect(sent({ model: "m", messages, modelKey: "m" })).toEqual({ model: "v", messages });
    expect(sent({ model: "m", modelKey: "m", messages, x: 1 })).toEqual({
      model: "v",
      messages,
      x: 1,
    });
  });

  it("the platform's route always asks the vendor for a stream where it always streams", () => {
    for (const stream of [undefined, false, null, true]) {
      const body = { modelKey: "m", prompt: "x", ...(stream === undefined ? {} : { stream }) };
      expect(sent(body, { alwaysStream: true })).toMatchObject({
        stream: true,
        stream_options: { include_usage: true },
      });
    }
  });

  it("the platform's names are unknown members in other styles", () => {
    expect(refusal({ modelKey: "m", messages }).param).toBe("model");
    expect(JSON.parse(sentBody(read({ model: "m", messages, prompt: 1 }), "m")).prompt).toBe(1);
  });
});

describe("R-ERR-7: bad bodies are refused by name", () => {
  it.each([
    ["model", { messages }],
    ["model", { model: 1, messages }],
    ["model", { model: "", messages }],
    ["model", { model: null, messages }],
    ["messages", { model: "m" }],
    ["messages", { model: "m", messages: "hi" }],
    ["stream", { model: "m", messages, stream: "yes" }],
    ["stream_options", { model: "m", messages, stream: true, stream_options: 1 }],
    ["max_tokens", { model: "m", messages, max_tokens: -1 }],
    ["max_tokens", { model: "m", messages, max_tokens: 0 }],
    ["max_tokens", { model: "m", messages, max_tokens: 1.5 }],
    ["max_tokens", { model: "m", messages, max_tokens: "9" }],
    ["max_completion_tokens", { model: "m", messages, max_completion_tokens: 1e300 }],
    ["n", { model: "m", messages, n: 0 }],
    ["n", { model: "m", messages, n: 129 }],
    ["model", '{"model":"a","messages":[],"model":"b"}'],
    ["model", String.raw`{"model":"a","messages":[],"mod\u0065l":"b"}`],
    ["max_tokens", '{"model":"a","messages":[],"max_tokens":1,"max_tokens":999999}'],
    ["Model", { model: "m", messages, Model: "dearer" }],
    ["MAX_TOKENS", { model: "m", messages, max_tokens: 1, MAX_TOKENS: 100_000 }],
    ["N", { model: "m", messages, N: 100 }],
    ["me\u017f\u017fages", { model: "m", messages, "me\u017f\u017fages": [] }],
  ])("a bad body is refused by the name %s: %j", (param, body) => {
    expect(refusal(body)).toMatchObject({ param, meaning: { status: 400 } });
  });

  it("holding the larger of two limits: vendors differ in which one they apply", () => {
    const limits = { max_completion_tokens: 1, max_tokens: 100_000 };
    expect(read({ model: "m", messages, ...limits }).maxOutputTokens).toBe(100_000);
  });

  it("a body is read without reading numbers that are not needed", () => {
    expect(
      read('{"model":"m","messages":[],"max_tokens":null,"seed":-1e999}').maxOutputTokens,
    ).toBeUndefined();
  });
});

describe("the output limit", () => {
  const sent = (limits: object, limitParameter: LimitParameter | undefined): unknown => {
    const request = read({ model: "m", ...limits, messages });
    const body = Buffer.concat(request.forVendor({ model: "m", limitParameter })).toString();
    return JSON.parse(body);
  };
  const bodyWith = (limits: object): object => ({ model: "m", ...limits, messages });

  it("the output limit is sent under the name that the vendor's model honours (R-TXT-11)", () => {
    expect(sent({ max_completion_tokens: 5 }, "max_tokens")).toEqual(bodyWith({ max_tokens: 5 }));
    const renamed = bodyWith({ max_completion_tokens: 5 });
    expect(sent({ max_tokens: 5 }, "max_completion_tokens")).toEqual(renamed);
    expect(sent({ max_tokens: 5 }, "max_tokens")).toEqual(bodyWith({ max_tokens: 5 }));
  });

  const written = (limits: string, limitParameter: LimitParameter): string => {
    const request = read(`{"model":"m",${limits},"messages":[]}`);
    return Buffer.concat(request.forVendor({ model: "m", limitParameter })).toString();
  };

  it.each<[LimitParameter, string, string]>([
    ["max_tokens", '"max_tokens":null,"max_completion_tokens":50', "50,null"],
    ["max_tokens", '"max_completion_tokens":50 , "max_tokens" : null', "50,null"],
    ["max_completion_tokens", '"max_tokens":50,"max_completion_tokens":null', "50,null"],
    ["max_completion_tokens", '"max_completion_tokens":null,"max_tokens":5e1', "50,null"],
    ["max_tokens", String.raw`"m\u0061x_tokens":null,"max_completion\u005ftokens":50.0`, "50,null"],
    ["max_tokens", '"max_completion_tokens":null,"max_tokens":50', "50,null"],
    ["max_tokens", '"max_tokens":1e2', "100,undefined"],
    ["max_tokens", '"max_completion_tokens":1.0e2', "100,undefined"],
    ["max_tokens", '"max_completion_tokens":null', "undefined,null"],
    ["max_tokens", '"max_tokens":null', "null,undefined"],
  ])(
    "the name that the vendor honours, %s, has the value of the only limit, in digits: %s (R-TXT-11)",
    (name, limits, expected) => {
      const body = JSON.parse(written(limits, name)) as Record<string, unknown>;
      const other = name === "max_tokens" ? "max_completion_tokens" : "max_tokens";
      expect(`${String(body[name])},${String(body[other])}`).toBe(expected);
    },
  );

  it("the output limit stays as the client sent it where it sent both names, or the route has no name for it", () => {
    const both = { max_tokens: 5, max_completion_tokens: 6 };
    expect(sent(both, "max_tokens")).toEqual(bodyWith(both));
    const own = { max_completion_tokens: 5 };
    expect(sent(own, undefined)).toEqual(bodyWith(own));
  });
});
