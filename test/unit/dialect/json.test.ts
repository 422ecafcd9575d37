import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  UnreadableReplyError,
  countAt,
  parseRecord,
  parseReply,
  recordAt,
  recordsAt,
  textAt,
} from "../../../src/wire/json/value.ts";
import { type JsonReader, parseObject } from "../../../src/dialect/reader.ts";
import { GatewayError } from "../../../src/core/errors.ts";

const read = (body: unknown) =>
  parseObject(Buffer.from(typeof body === "string" ? body : JSON.stringify(body)));

function refusal(run: () => unknown): { param: string | undefined; message: string } {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError) return { param: error.param, message: error.message };
    throw error;
  }
  throw new Error("was accepted");
}

describe("R-ERR-7: a body that cannot be read is refused", () => {
  it.each([
    ["no JSON", "{"],
    ["an array", "[]"],
    ["a text", '"a"'],
    ["a member twice", '{"a":1,"a":2}'],
    ["text behind it", "{} {}"],
    ["65 levels", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`],
  ])("a body that is %s cannot be read and is refused", (_, body) => {
    expect(() => read(body)).toThrow(GatewayError);
  });

  it("a body with 64 levels is accepted", () => {
    const body = `{"a":${"[".repeat(63)}${"]".repeat(63)}}`;
    expect(read(body).has("a")).toBe(true);
  });

  it("refuses bytes that are no UTF-8", () => {
    expect(() => parseObject(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toThrow(
      GatewayError,
    );
  });

  it("names the member by its path", () => {
    const body = { messages: [{ content: "x" }, { content: [{ text: 7 }] }] };
    const part = () => read(body).objects("messages")[1]?.objects("content")[0];
    expect(refusal(() => part()?.text("text"))).toEqual({
      param: "messages[1].content[0].text",
      message: '"messages[1].content[0].text" must be a string',
    });
    expect(refusal(() => read({ a: [1] }).objects("a")).param).toBe("a[0]");
    expect(refusal(() => read({ a: [1] }).texts("a")).param).toBe("a[0]");
  });

  it.each<[string, (reader: JsonReader) => unknown]>([
    ["texts", (r) => r.texts("m")],
    ["objects", (r) => r.objects("m")],
    ["object", (r) => r.object("m")],
    ["flag", (r) => r.flag("m")],
    ["number", (r) => r.number("m", { min: 0, max: 2 })],
    ["count", (r) => r.count("m")],
    ["int64", (r) => r.int64("m")],
    ["word", (r) => r.word("m", ["a", "b"])],
  ])("says what a %s must be", (_, readIt) => {
    const { param, message } = refusal(() => readIt(read({ m: "x" })));
    expect(param).toBe("m");
    expect(message).toMatch(/^"m" must be /);
  });
});

describe("R-TXT-2: members that were not read are kept", () => {
  it("members that were not read are kept as extras, spelled as they came, without nulls", () => {
    const reader = read('{"model":"m","x":2.50,"big":12345678901234567890,"no":null,"y":[1, 2]}');
    reader.text("model");
    expect(reader.extras().map(({ name, json }) => [name, json])).toEqual([
      ["x", "2.50"],
      ["big", "12345678901234567890"],
      ["y", "[1,2]"],
    ]);
  });

  it("members that were not read are kept whatever they are called and hold", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (members) => {
        const kept = Object.entries(members).filter(([, value]) => value !== null);
        const extras = read(members).extras();
        expect(extras.map(({ name, json }) => [name, JSON.stringify(JSON.parse(json))])).toEqual(
          kept.map(([name, value]) => [name, JSON.stringify(value)]),
        );
      }),
    );
  });

  it("keeps whole numbers of 64 bits exact", () => {
    expect(read('{"seed":9223372036854775807}').int64("seed")).toBe(2n ** 63n - 1n);
    expect(() => read('{"seed":9223372036854775808}').int64("seed")).toThrow(GatewayError);
  });
});

describe("a vendor's reply", () => {
  it("a vendor's reply must be an object", () => {
    expect(() => parseReply(Buffer.from("[]"))).toThrow(UnreadableReplyError);
    expect(() => parseReply(Buffer.from("<html>"))).toThrow(UnreadableReplyError);
    expect(parseReply(Buffer.from('{"a":1}'))).toEqual({ a: 1 });
    expect(parseRecord("7")).toBeUndefined();
  });

  it("a vendor's reply reads what has another type as absent", () => {
    const record = { text: 1, count: -1, record: [], records: [1, { a: 1 }] };
    expect(textAt(record, "text")).toBe("");
    expect(countAt(record, "count")).toBeUndefined();
    expect(recordAt(record, "record")).toBeUndefined();
    expect(recordsAt(record, "records")).toEqual([{ a: 1 }]);
    expect(recordsAt(record, "none")).toEqual([]);
  });
});
