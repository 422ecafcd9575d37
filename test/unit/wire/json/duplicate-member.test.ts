/** Names that stand twice in one object of a body (R-ERR-7). */
import { expect, test } from "vitest";
import { findDuplicateMember } from "../../../../src/wire/json/duplicate-member.ts";

test.each([
  ['{"a":1,"a":2}', "a"],
  ['{"a":{"b":1,"b":2}}', "a.b"],
  ['{"a":[{"b":1},{"b":1,"c":[],"b":2}]}', "a[1].b"],
  ['[[{"a":1,"a":1}]]', "[0][0].a"],
  ['{"a":{"n":{}, "\\u006e" : 1}}', "a.n"],
  ['{"":1,"":2}', ""],
  ['{"__proto__":1,"__proto__":2}', "__proto__"],
  ['{"a\\"":1,"b":"\\\\","a\\"":2}', 'a"'],
])("a duplicate member is found in %s", (text, path) => {
  expect(findDuplicateMember(Buffer.from(text))?.path).toBe(path);
});

test.each([
  "{}",
  "[]",
  '{"a":{"a":{"a":1}},"b":{"a":1}}',
  '{"a":[{"a":1},{"a":1}],"A":1}',
  '{"a":"\\"a\\":1,\\"a\\":2","b":"\\\\"}',
  '{"a":"b","b":"a","c":["a","a"]}',
  '{"a":"{\\"x\\":1,\\"x\\":2}"}',
])("no duplicate member is found in %s", (text) => {
  expect(findDuplicateMember(Buffer.from(text))).toBeUndefined();
});
