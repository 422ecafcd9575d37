/** The bytes of a request on their way to the vendor. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { NativeBody } from "../../../src/native/body.ts";

function bodyOf(text: string): NativeBody {
  return new NativeBody({
    groups: {},
    query: new URLSearchParams(),
    headers: {},
    body: Buffer.from(text),
  });
}

test("removed members leave the others unchanged", () => {
  const names = ["a", "b", "c", "d", "e"];
  const value = fc.constantFrom("1.50", '"x,y"', '{"a": [1, 2]}', "null", "9007199254740993");
  const space = fc.constantFrom("", " ", "\n  ");
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.constantFrom(...names)),
      fc.subarray(names),
      value,
      space,
      (present, without, text, gap) => {
        const written = present.map((name) => `${gap}"${name}"${gap}:${gap}${text}${gap}`);
        const sent = bodyOf(`{${written.join(",")}}`).forVendor({ without });
        const left = JSON.parse(Buffer.concat(sent).toString()) as object;
        expect(Object.keys(left)).toEqual(present.filter((name) => !without.includes(name)));
        const kept = written.filter((_each, at) => !without.includes(present[at] ?? ""));
        for (const each of kept) expect(Buffer.concat(sent).toString()).toContain(each.trim());
      },
    ),
  );
});

test("a body without changes keeps its bytes", () => {
  const text = '{ "seed" : 9007199254740993,\n "x":-0.10 }';
  expect(Buffer.concat(bodyOf(text).forVendor({ without: ["webhook"] })).toString()).toBe(text);
});

test("a member that decides the model or the charge may appear only once, in one spelling", () => {
  const names = ["generationConfig", "generation_config"];
  expect(() => bodyOf('{"generationConfig":{},"generation_config":{}}').member(...names)).toThrow();
  expect(() => bodyOf('{"model":"a","model":"b"}').member("model")).toThrow(/twice/);
  expect(() => bodyOf('{"model":"a","mod\\u0065l":"b"}').member("model")).toThrow(/twice/);
});

test("mentions are found wherever they stand, however their names are written", () => {
  const text = '{"a":[{"file\\u0055ri":"x"},{"b":{"fileUri":"y"}}],"fileUri":["z"],"other":"w"}';
  expect(bodyOf(text).mentions("fileUri")).toEqual(["x", "y", "z"]);
});
