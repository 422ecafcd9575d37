/** Pitfall 1: addresses become ours in the bytes, however those are cut; nothing else changes. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  AddressRewriter,
  rewriteAddresses,
  rewriteHeader,
} from "../../../../src/wire/json/addresses.ts";

const members = new Set(["uri", "get"]);
const edit = { from: "https://vendor.test", to: "http://us/p", members };

function through(pieces: readonly Buffer[]): string {
  const rewriter = new AddressRewriter([edit]);
  const passed = pieces.map((piece) => Buffer.from(rewriter.push(piece)));
  return Buffer.concat([...passed, rewriter.end()]).toString();
}

const rows: readonly (readonly [name: string, from: string, to: string])[] = [
  ["a member that is named", '{"uri":"https://vendor.test/v1/x"}', '{"uri":"http://us/p/v1/x"}'],
  ["with white space", '{"get" :\n "https://vendor.test/a"}', '{"get" :\n "http://us/p/a"}'],
  ["escaped slashes", '{"uri":"https:\\/\\/vendor.test\\/a"}', '{"uri":"http:\\/\\/us\\/p\\/a"}'],
  ["the address alone", '{"uri":"https://vendor.test"}', '{"uri":"http://us/p"}'],
  ["with a query", '{"uri":"https://vendor.test?a=b"}', '{"uri":"http://us/p?a=b"}'],
  [
    "several",
    '[{"uri":"https://vendor.test/a"},{"get":"https://vendor.test/b"}]',
    '[{"uri":"http://us/p/a"},{"get":"http://us/p/b"}]',
  ],
];

/** Addresses that stay unchanged. */
const same: readonly string[] = [
  '{"text":"https://vendor.test/v1/x"}',
  '{"text":"see \\"uri\\": \\"https://vendor.test/x\\""}',
  '{"uri":"https://vendor.test.evil/x"}',
  '{"uri":"see https://vendor.test/x"}',
  '{"uri":"http://vendor.test/x"}',
  '{"uri":["https://vendor.test/x"]}',
  '{"seed": 9007199254740993, "x": -0.10}',
];

for (const [name, from, to] of rows) {
  test(`${name} becomes an address of the gateway`, () => {
    expect(rewriteAddresses(Buffer.from(from), [edit]).toString()).toBe(to);
  });
}

test("what a model says, what is another host, and what is no address, stays", () => {
  for (const each of same) {
    const bytes = Buffer.from(each);
    expect(rewriteAddresses(bytes, [edit]).toString()).toBe(each);
  }
});

test("however a stream is cut, the same bytes come out", () => {
  const all = [...rows.map(([, from]) => from), ...same];
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...all), { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(400), { maxLength: 12 }),
      (parts, cuts) => {
        const whole = Buffer.from(parts.join(","));
        const at = [...new Set([0, ...cuts.filter((cut) => cut < whole.length), whole.length])];
        const sorted = at.toSorted((a, b) => a - b);
        const pieces = sorted.slice(1).map((end, index) => whole.subarray(sorted[index], end));
        expect(through(pieces)).toBe(rewriteAddresses(whole, [edit]).toString());
      },
    ),
  );
});

test("a header is an address as a whole, or none", () => {
  const rewrite = (value: string) => rewriteHeader(value, [edit]);
  expect(rewrite("https://vendor.test/upload?a=b")).toBe("http://us/p/upload?a=b");
  expect(rewrite("https://vendor.test.evil/upload")).toBe("https://vendor.test.evil/upload");
  expect(rewrite("https://vendor.test:8443/upload")).toBe("https://vendor.test:8443/upload");
});
