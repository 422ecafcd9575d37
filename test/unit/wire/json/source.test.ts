/**
 * Values of others are passed on as they were written: every digit, escape and name, in their
 * order.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readOutline } from "../../../../src/dialect/body-members.ts";
import { parseObject } from "../../../../src/dialect/reader.ts";
import {
  JsonSource,
  listElements,
  memberOf,
  objectMembers,
  changeMembers,
  withoutSpace,
} from "../../../../src/wire/json/source.ts";
import { JsonText, writeJson } from "../../../../src/wire/json/json-tree.ts";
import { jsonBody, LongTexts } from "../../../../src/wire/json/long-texts.ts";
import { anyJson, anyObject, type SpelledJson } from "./arbitrary.ts";

/** A value at a path in other JSON, whose names are unlike those of the value. */
const placed = fc.tuple(anyObject, anyJson, anyJson).map(([object, before, behind]) => ({
  object,
  json: `{"before":[${before.spaced}, {"Object":{}}],"list": [ 1,[], {"The value":${object.spaced} }],"z":${behind.spaced}}`,
}));

interface Placed {
  readonly list: readonly [number, unknown, { readonly "The value": object }];
}

describe("the source of parsed JSON", () => {
  it("has the text of each object as it was written, without white space between tokens", () => {
    fc.assert(
      fc.property(placed, ({ object, json }) => {
        const root = JSON.parse(json) as Placed;
        const holder = root.list[2];
        for (const text of [json, Buffer.from(json)]) {
          const source = new JsonSource(text, root);
          expect(source.textOf(holder["The value"])).toBe(object.tight);
          expect(source.memberText(holder, "The value")).toBe(object.tight);
          expect(source.memberText(holder, "absent")).toBe("");
          expect(source.textOf(root)).toBe(withoutSpace(json));
        }
      }),
    );
  });

  it("has the text of members that are no objects, of which the last counts if they are repeated", () => {
    const text = String.raw`{"a":1.10, "b\u0020" : "caf\u00e9","a": 2512292042121000001 ,"c":null}`;
    const root = JSON.parse(text) as object;
    const source = new JsonSource(text, root);
    expect(source.memberText(root, "a")).toBe("2512292042121000001");
    expect(source.memberText(root, "b ")).toBe(String.raw`"caf\u00e9"`);
    expect(source.memberText(root, "c")).toBe("null");
    expect(source.memberText(root, "toString")).toBe("");
  });

  it("finds the last of repeated members, also if those before it are of another form", () => {
    const text = '{"a":{"x":{"p":1.0}},"a":[[1]],"a":{"x":{"q":2.0}}}';
    const root = JSON.parse(text) as { a: { x: object } };
    const source = new JsonSource(text, root);
    expect(source.textOf(root.a)).toBe('{"x":{"q":2.0}}');
    expect(source.textOf(root.a.x)).toBe('{"q":2.0}');
  });

  it("is found in values that are nested as deeply as JSON.parse can read", () => {
    const depth = 5_000;
    const text = `{"a":${"[".repeat(depth)}{"x":1.0}${"]".repeat(depth)}}`;
    const root = JSON.parse(text) as { a: object };
    expect(new JsonSource(text, root).textOf(root.a)).toBe(text.slice(5, -1));
  });

  it("is searched within strings of all lengths, whatever escapes they have", () => {
    for (const unit of [String.raw`\"`, String.raw`\\`, "x", String.raw`{\\\"[`, "é😀"]) {
      for (const count of [1, 500, 5_000]) {
        const text = `{"t":"${unit.repeat(count)}","v":{"n":1.0}}`;
        const root = JSON.parse(text) as { v: object };
        expect(new JsonSource(text, root).textOf(root.v)).toBe('{"n":1.0}');
      }
    }
  });
});

describe("members and elements of JSON", () => {
  it("are its own, as they were written", () => {
    fc.assert(
      fc.property(fc.array(anyJson), (all) => {
        const tight = all.map((each) => each.tight);
        expect(listElements(`[${all.map(({ spaced }) => spaced).join(",")}]`)).toEqual(tight);
        const object = `{ ${all.map(({ spaced }, at) => `"m${at}":${spaced}`).join(",")} }`;
        expect(objectMembers(object)).toEqual(tight.map((json, at) => ({ name: `m${at}`, json })));
      }),
    );
  });

  it("can be changed, added and removed, and the others keep their text and order", () => {
    const json = '{ "7":1.10, "a" : {"x": 1e2}, "1":[-0], "a":2 }';
    expect(changeMembers(json, { 1: "true", b: '"new"' })).toBe(
      '{"7":1.10,"a":{"x":1e2},"1":true,"a":2,"b":"new"}',
    );
    expect(changeMembers(json, { a: undefined })).toBe('{"7":1.10,"1":[-0]}');
    expect(changeMembers("{}", { b: undefined, a: "1" })).toBe('{"a":1}');
    expect(memberOf(json, "a")).toBe("2");
    expect(memberOf(json, "b")).toBe("");
    expect(memberOf("[1]", "0")).toBe("");
  });
});

describe("a body's reader", () => {
  const body = ({ spaced }: SpelledJson, other: SpelledJson): Buffer =>
    Buffer.from(
      `{ "top": ${spaced}, "l":[ ${other.spaced} ,{"in":{"v": ${spaced} ,"w":1.0}}, {} ] , "n":{"v":${spaced}}}`,
    );

  it("has each member as the client wrote it, wherever it is", () => {
    fc.assert(
      fc.property(anyObject, anyObject, (value, other) => {
        const reader = parseObject(body(value, other));
        const [first, second, third] = reader.objects("l");
        expect(first?.toJson()).toBe(other.tight);
        const inner = second?.object("in");
        expect(inner?.json("v")).toBe(value.tight);
        expect(inner?.object("v")?.toJson()).toBe(value.tight);
        expect(inner?.extras()).toMatchObject([{ name: "w", json: "1.0" }]);
        expect(third?.toJson()).toBe("{}");
        expect(reader.object("n")?.json("v")).toBe(value.tight);
        expect(reader.json("top")).toBe(value.tight);
        expect(parseObject(body(value, other)).extras()[0]).toMatchObject({ json: value.tight });
      }),
    );
  });

  it("has each element of several lists, of one and of many", () => {
    for (const count of [1, 2, 50]) {
      const list = (name: string): string =>
        `"${name}":[${Array.from({ length: count }, (_, at) => `{"${name}":${at}.10,"x":[1,2]}`).join(" , ")}]`;
      const reader = parseObject(Buffer.from(`{${list("a")},"e":[],"s":[[1,2],3],${list("b")}}`));
      for (const name of ["a", "b"]) {
        expect(reader.objects(name).map((each) => each.toJson())).toEqual(
          Array.from({ length: count }, (_, at) => `{"${name}":${at}.10,"x":[1,2]}`),
        );
      }
    }
  });
});

describe("JSON that is written with values of others", () => {
  const tree = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom("x", 1, null, true, "\u0000"),
      anyJson.map(({ tight }) => new JsonText(tight)),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom("a", "b", "__proto__"), tie("value"), { maxKeys: 3 }),
    ),
  })).value;

  /** Returns the output of JSON.stringify if the preserved values equal what it would write. */
  const plain = (value: unknown): unknown => {
    if (value instanceof JsonText) return JSON.parse(value.text) as unknown;
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
  };

  it("has them as they are, and all else as JSON.stringify writes it", () => {
    fc.assert(
      fc.property(tree, (value) => {
        const json = writeJson(value);
        expect(JSON.stringify(JSON.parse(json))).toBe(JSON.stringify(plain(value)));
        expect(writeJson(plain(value))).toBe(JSON.stringify(plain(value)));
      }),
    );
    const own = { a: undefined, b: [new JsonText("1.10"), undefined, 1, 2], c: new JsonText("-0") };
    expect(writeJson({ x: own, y: {} })).toBe('{"x":{"b":[1.10,null,1,2],"c":-0},"y":{}}');
  });

  it("has long texts as the client wrote them too, and its outline finds them", () => {
    const written = String.raw`"${String.raw`caf\u00e9 `.repeat(2_000)}"`;
    const long = JSON.parse(written) as string;
    const texts = new LongTexts();
    texts.add(long, Buffer.from(written));
    const { body, outline } = jsonBody({ a: [1, long, new JsonText("1.0")], b: long }, texts);
    expect(body.toString()).toBe(`{"a":[1,${written},1.0],"b":${written}}`);
    const { members, weight } = outline();
    expect(members.map(({ key }) => key)).toEqual(["a", "b"]);
    expect(weight).toBe(readOutline(body).weight);
  });
});
