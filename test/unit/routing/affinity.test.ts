/** Conversations stay with their route and credential, the same in every process. */
import { expect, it } from "vitest";
import { conversationKey } from "../../../src/routing/affinity.ts";
import { chooseByConversation } from "../../../src/routing/choice.ts";

const candidate = (name: string, weight = 1, priority = 0) => ({
  name,
  weight,
  priority,
  inFlight: 0,
});
const keys = Array.from({ length: 3_000 }, (_, index) => `conversation ${index}`);
type Candidates = readonly ReturnType<typeof candidate>[];
const choose = (usable: Candidates, key: string) =>
  chooseByConversation(usable, key, ({ name }) => name)?.name;

it("conversations are shared by weight, whatever the order of the candidates (R-RTE-1)", () => {
  const all = [candidate("a", 70), candidate("b", 25), candidate("c", 5), candidate("d", 0)];
  const counts: Record<string, number> = { a: 0, b: 0, c: 0, d: 0 };
  for (const key of keys) {
    const chosen = choose(all, key) ?? "";
    expect(choose(all.toReversed(), key)).toBe(chosen);
    counts[chosen] = (counts[chosen] ?? 0) + 1;
  }
  const { a = 0, b = 0, c = 0, d } = counts;
  expect(Math.abs(a / keys.length - 0.7)).toBeLessThan(0.03);
  expect(Math.abs(b / keys.length - 0.25)).toBeLessThan(0.03);
  expect(Math.abs(c / keys.length - 0.05)).toBeLessThan(0.02);
  expect(d).toBe(0);
});

it("if a candidate fails, only its own conversations move, and they come back (R-RTE-1)", () => {
  const all = [candidate("a"), candidate("b"), candidate("c")];
  const left = all.filter(({ name }) => name !== "b");
  for (const key of keys) {
    const before = choose(all, key);
    const meanwhile = choose(left, key);
    if (before === "b") expect(meanwhile).not.toBe("b");
    else expect(meanwhile).toBe(before);
  }
});

it("a lower priority number comes first, and weights of 0 count if there are no others", () => {
  expect(choose([candidate("a", 1, 1), candidate("b", 0, 0)], "x")).toBe("b");
  const zeros = [candidate("a", 0), candidate("b", 0)];
  expect(new Set(keys.map((key) => choose(zeros, key)))).toEqual(new Set(["a", "b"]));
  expect(choose([], "x")).toBeUndefined();
});

it("equal conversations of other accounts, keys or models have separate keys", () => {
  const owner = { accountId: "a", keyId: "k", model: "m" };
  const all = [
    owner,
    { ...owner, accountId: "b" },
    { ...owner, keyId: "l" },
    { ...owner, model: "n" },
  ].map((each) => conversationKey("id", each));
  expect(new Set(all).size).toBe(4);
  expect(conversationKey(Buffer.from("id"), owner)).toBe(all[0]);
});
