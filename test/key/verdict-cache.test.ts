import * as fc from "fast-check";
import { expect, test } from "vitest";
import { VerdictCache } from "../../src/key/verdict-cache.ts";

function entry(value: string, { untilMs = 1_000, keyId = `key of ${value}`, weight = 1 } = {}) {
  return { value, untilMs, keyId, weight };
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

const command = fc.record({
  kind: fc.constantFrom("set", "set", "get", "get", "forget", "clear"),
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
          cache.set(`d${index}`, entry(value, { keyId: `k${index}`, weight }));
          model.set(index, value);
        } else if (kind === "forget") {
          cache.forget(`k${index}`);
          model.delete(index);
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
