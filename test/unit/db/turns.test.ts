/** Who gets one of a few places next. */
import { expect, test } from "vitest";
import { Turns } from "../../../src/db/pool/share-pool.ts";

/** Two places, of which `many` may have one. */
function open() {
  const turns = new Turns({ places: 2, share: (lane) => (lane === "many" ? 1 : 2) });
  const begun: string[] = [];
  const refused: string[] = [];
  const enter = (lane: string, name = lane, sinceMs = 0): void => {
    if (turns.take(lane)) begun.push(name);
    else
      turns.wait({
        lane,
        sinceMs,
        begin: () => begun.push(name),
        refuse: ({ message }) => refused.push(`${name}: ${message}`),
      });
  };
  return { turns, begun, refused, enter };
}

test("lanes take turns, and each keeps its order", () => {
  const { turns, begun, enter } = open();
  for (const name of ["a1", "a2", "a3", "a4"]) enter("a", name);
  for (const name of ["b1", "b2"]) enter("b", name);
  enter("c", "c1");
  expect(begun).toEqual(["a1", "a2"]);
  turns.leave("a");
  turns.leave("a");
  turns.leave("a");
  turns.leave("b");
  expect(begun.slice(2)).toEqual(["a3", "b1", "c1", "a4"]);
  expect([turns.waitingIn("a"), turns.waitingIn("b"), turns.isIdle]).toEqual([0, 1, false]);
  turns.leave("c");
  expect([begun.at(-1), turns.isIdle]).toEqual(["b2", true]);
});

test("a lane with its share waits though a place is free, and keeps nobody else", () => {
  const { turns, begun, enter } = open();
  enter("many", "m1");
  enter("many", "m2");
  enter("few", "f1");
  expect(begun).toEqual(["m1", "f1"]);
  turns.leave("few");
  expect(begun).toHaveLength(2);
  turns.leave("many");
  expect(begun).toEqual(["m1", "f1", "m2"]);
});

test("who is refused has no turn any more, and the others keep theirs", () => {
  const { turns, begun, refused, enter } = open();
  enter("a", "a1");
  enter("a", "a2");
  enter("a", "a3", 1);
  enter("a", "a4", 2);
  enter("b", "b1", 1);
  turns.refuse(({ sinceMs }) => (sinceMs === 1 ? new Error("too long") : undefined));
  expect(refused).toEqual(["a3: too long", "b1: too long"]);
  turns.leave("a");
  expect([begun.at(-1), turns.isIdle]).toEqual(["a4", true]);
});
