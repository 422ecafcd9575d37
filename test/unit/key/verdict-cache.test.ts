import * as fc from "fast-check";
import { expect, test } from "vitest";
import { VerdictCache } from "../../../src/key/verdict-cache.ts";

interface EntryOptions {
  readonly untilMs?: number;
  readonly keyId?: string;
  readonly accountId?: string;
  readonly weight?: number;
}

function entry(value: string, options: EntryOptions = {}) {
  const { untilMs = 1_000, keyId = `key of ${value}`, accountId, weight = 1 } = options;
  return { value, untilMs, keyId, accountId, weight };
}

test("an entry counts until its time", () => {
  const cache = new VerdictCache<string>(10);
  cache.set("a", entry("A", { untilMs: 100 }));
  expect(cache.get("a", 99)).toBe("A");
  expect(cache.get("a", 100)).toBeUndefined();
  expect(cache.get("b", 0)).toBeUndefined();
});

test("what is in use stays, what is not goes, whatever else comes", () => {
  const cache = new VerdictCache<string>(10);
  cache.set("used", entry("used"));
  cache.set("idle", entry("idle"));
  for (let index = 0; index < 100; index++) {
    cache.set(`other ${index}`, entry("other", { keyId: `other ${index}` }));
    expect(cache.get("used", 0)).toBe("used");
  }
  expect(cache.get("idle", 0)).toBeUndefined();
});

test("heavy entries take the room of many", () => {
  const cache = new VerdictCache<string>(100);
  for (let index = 0; index < 100; index++) {
    cache.set(`${index}`, entry("x", { keyId: `${index}`, weight: 20 }));
    expect(cache.size).toBeLessThanOrEqual(5);
  }
});

test("R-KEY-4: forgetting an account forgets its keys, and those alone", () => {
  const cache = new VerdictCache<string>(100);
  for (const [digest, accountId] of [
    ["a", "1"],
    ["b", "1"],
    ["c", "2"],
  ] as const) {
    cache.set(digest, entry(digest, { accountId }));
  }
  cache.forget("1");
  expect(["a", "b", "c"].map((digest) => cache.get(digest, 0))).toEqual([
    undefined,
    undefined,
    "c",
  ]);
});

const command = fc.record({
  kind: fc.constantFrom("set", "set", "get", "get", "forget", "forget account", "clear"),
  index: fc.nat(7),
  weight: fc.integer({ min: 1, max: 3 }),
});

test("R-AUTH-3: what was forgotten is never given again, and nothing wrong ever", () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 200 }), (commands) => {
      const cache = new VerdictCache<string>(8);
      const model = new Map<number, string>();
      for (const [step, { kind, index, weight }] of commands.entries()) {
        const value = `${step}`;
        if (kind === "set") {
          const accountId = `a${index % 3}`;
          cache.set(`d${index}`, entry(value, { keyId: `k${index}`, accountId, weight }));
          model.set(index, value);
        } else if (kind === "forget") {
          cache.forget(`k${index}`);
          model.delete(index);
        } else if (kind === "forget account") {
          cache.forget(`a${index % 3}`);
          for (const each of model.keys()) if (each % 3 === index % 3) model.delete(each);
        } else if (kind === "clear") {
          cache.clear();
          model.clear();
        }
        const found = cache.get(`d${index}`, 0);
        // It may have been dropped for want of room, but never be another value.
        if (found !== undefined) expect(found).toBe(model.get(index));
        if (kind === "set") expect(found).toBe(value);
        expect(cache.size).toBeLessThanOrEqual(8);
      }
    }),
  );
});
