import * as fc from "fast-check";
import { expect, test } from "vitest";
import { idSource, isUuid, newId } from "../../../src/core/uuid.ts";

const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("ids are UUIDv7 of now", () => {
  const before = Date.now();
  const id = newId();
  expect(id).toMatch(uuidv7);
  expect(isUuid(id)).toBe(true);
  const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  expect(ms).toBeGreaterThanOrEqual(before);
});

test("ids grow, whatever the clock does, and keep its time where it goes on", () => {
  const times = fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(times, (offsets) => {
      const clock = [...offsets];
      const make = idSource(() => 1_800_000_000_000 + (clock.shift() ?? 0));
      const ids = offsets.map(() => make());
      expect(ids.every((id) => uuidv7.test(id))).toBe(true);
      expect(ids.toSorted()).toEqual(ids);
      expect(new Set(ids).size).toBe(ids.length);
    }),
  );
});

test("more ids than a millisecond counts take the next one's time, and still grow", () => {
  const make = idSource(() => 1_800_000_000_000);
  const ids = Array.from({ length: 10_000 }, make);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(10_000);
});
