import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Left, Repeats } from "../../../src/core/repeats.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function createRig() {
  const ended: Left<string>[] = [];
  const options = { max: 2, windowMs: 60_000, kindsMax: 2 };
  const repeats = new Repeats<string>({ ...options, onEnd: (left) => void ended.push(left) });
  const passing = (kind: string, names: readonly string[]) =>
    names.filter((name) => repeats.passes(kind, () => name));
  return { repeats, passing, ended };
}

test("the first events of a kind pass, and the rest of the minute is one number", () => {
  const { passing, ended } = createRig();
  expect(passing("a", ["1", "2", "3", "4"])).toEqual(["1", "2"]);
  expect(passing("b", ["5"])).toEqual(["5"]);
  expect(ended).toEqual([]);
  vi.advanceTimersByTime(60_000);
  expect(ended).toEqual([{ count: 2, first: "3" }]);
  expect(passing("a", ["6"])).toEqual(["6"]);
});

test("kinds above the maximum are counted together, and stopping ends the window", () => {
  const { repeats, passing, ended } = createRig();
  for (const kind of ["a", "b", "c", "d"]) passing(kind, ["1"]);
  repeats.end();
  expect(ended).toEqual([{ count: 2, first: undefined }]);
  expect(vi.getTimerCount()).toBe(0);
});
