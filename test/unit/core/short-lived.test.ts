import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { type Placed, ShortLivedMap, ShortLivedSet } from "../../../src/core/short-lived.ts";

interface Named extends Placed {
  readonly name: string;
}

function named(name: string): Named {
  return { name, place: -1 };
}

const namesIn = (set: ShortLivedSet<Named>): string[] => set.list().map(({ name }) => name);

test("a set holds what was added and not deleted", () => {
  const set = new ShortLivedSet<Named>();
  const [one, two, three] = [named("one"), named("two"), named("three")];
  for (const each of [one, two, three]) set.add(each);
  expect(set.size).toBe(3);
  expect(set.delete(one)).toBe(true);
  expect(namesIn(set).sort()).toEqual(["three", "two"]);
  expect(set.delete(three)).toBe(true);
  expect(namesIn(set)).toEqual(["two"]);
  set.add(one);
  expect(namesIn(set).sort()).toEqual(["one", "two"]);
  expect(set.delete(two)).toBe(true);
  expect(set.delete(one)).toBe(true);
  expect(set.size).toBe(0);
  expect(namesIn(set)).toEqual([]);
});

test("a set holds an object once, and deletes only what it holds", () => {
  const set = new ShortLivedSet<Named>();
  const [one, two] = [named("one"), named("two")];
  set.add(one);
  set.add(one);
  expect(set.size).toBe(1);
  expect(set.delete(two)).toBe(false);
  expect(set.delete(one)).toBe(true);
  expect(set.delete(one)).toBe(false);
  expect(set.size).toBe(0);
});

test("a list of a set stays as it is while its objects are deleted", () => {
  const set = new ShortLivedSet<Named>();
  for (const name of ["one", "two", "three"]) set.add(named(name));
  const seen = set.list().map((each) => {
    set.delete(each);
    return each.name;
  });
  expect(seen).toEqual(["one", "two", "three"]);
  expect(set.size).toBe(0);
});

test("a map gives its objects in the order of their ids, without deleted ones", () => {
  const map = new ShortLivedMap<Named>();
  for (const name of ["one", "two", "three"]) map.set(name, named(name));
  map.set("one", named("first"));
  expect(map.delete("two")).toBe(true);
  expect(map.delete("two")).toBe(false);
  expect([...map.values()].map(({ name }) => name)).toEqual(["first", "three"]);
  expect(map.size).toBe(2);
});

test("the objects of a map may be deleted while they are read", () => {
  const map = new ShortLivedMap<Named>();
  for (const name of ["one", "two", "three"]) map.set(name, named(name));
  const seen: string[] = [];
  for (const { name } of map.values()) {
    seen.push(name);
    map.delete(name);
    if (name === "one") map.delete("two");
  }
  expect(seen).toEqual(["one", "three"]);
  expect(map.size).toBe(0);
});

/** Bytes of the old generation. */
function oldBytes(): number {
  const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => name === "old_space");
  return spaces.reduce((sum, { space_used_size: bytes }) => sum + bytes, 0);
}

test.each(["set", "map"] as const)(
  "what was deleted from a long-lived %s does not move to the old generation",
  (kind) => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;
    const running = { ...named("running"), ballast: [0] };
    const set = new ShortLivedSet<typeof running>();
    const map = new ShortLivedMap<typeof running>();
    set.add(running);
    map.set("running", running);
    // The collection itself is old now.
    collect();
    collect();
    const before = oldBytes();
    // Ten live at a time: those that live when a table is full stay in it.
    const alive: (typeof running)[] = [];
    for (let turn = 0; turn < 20_000; turn++) {
      const each = {
        name: String(turn),
        place: -1,
        ballast: Array.from({ length: 100 }, () => turn),
      };
      alive.push(each);
      if (kind === "set") set.add(each);
      else map.set(each.name, each);
      const gone = alive.length > 10 ? alive.shift() : undefined;
      if (gone === undefined) continue;
      if (kind === "set") set.delete(gone);
      else map.delete(gone.name);
    }
    collect({ type: "minor" });
    collect({ type: "minor" });
    // The objects have 16 MB; the ids that a map keeps, and their slots, have 2.
    expect(oldBytes() - before).toBeLessThan(4_000_000);
  },
);
