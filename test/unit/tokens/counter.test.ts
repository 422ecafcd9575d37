/** Counting in a thread: whatever it does, the caller gets an answer, and calls continue. */
import { afterEach, describe, expect, it } from "vitest";
import { countAccountMax, countBytesMax, countQueueMax } from "../../../src/core/limits.ts";
import type { Caller } from "../../../src/core/caller.ts";
import { runInAccountContext } from "../../../src/core/current-account.ts";
import {
  type CountQuestion,
  createTokenCounter,
  type TokenCounter,
  type TokenCounterOptions,
} from "../../../src/tokens/counter.ts";

const script = new URL("fail.ts", import.meta.url);
const counters: TokenCounter[] = [];
const warnings: string[] = [];

afterEach(async () => {
  await Promise.all(counters.splice(0).map((made) => made.close()));
  warnings.length = 0;
});

function counter(options: Partial<TokenCounterOptions> = { script }): TokenCounter {
  const warn = (_: string, fields: object): void => void warnings.push(JSON.stringify(fields));
  const made = createTokenCounter({ warn, ...options });
  counters.push(made);
  return made;
}

function question(body: string, encoding: CountQuestion["encoding"] = "o200k_base"): CountQuestion {
  return { encoding, kind: "request", body: Buffer.from(body) };
}

describe("the token counter", () => {
  it("the token counter answers in order", async () => {
    const { count } = bind(counter());
    expect(await Promise.all(["7", "8", "9"].map((word) => count(question(word))))).toEqual([
      7, 8, 9,
    ]);
  });

  it("the token counter counts requests and replies with either tokenizer", async () => {
    const { count } = bind(counter({}));
    const body = JSON.stringify({ messages: [{ role: "user", content: "hello world" }] });
    expect(await count(question(body))).toBe(3 + 3 + 1 + 2);
    expect(await count(question(body, "cl100k_base"))).toBe(3 + 3 + 1 + 2);
    const reply = {
      choices: [{ message: { role: "assistant", content: "hello world" } }],
      id: "x y",
    };
    const asked = { ...question(JSON.stringify(reply)), kind: "reply" } as const;
    expect(await count(asked)).toBe(2);
    expect(await count(question("no JSON"))).toBeUndefined();
    expect(await count(question(body))).toBe(9);
  });
});

it("a text that was counted is not counted again", async () => {
  const { count } = bind(counter({ script, timeoutMs: 60_000 }));
  expect(await count(question("12"))).toBe(12);
  // Only what is remembered can be known now: the thread hangs.
  void count(question("hang"));
  expect(await count(question("12"))).toBe(12);
});

describe("the token counter answers undefined", () => {
  it("the token counter answers undefined where a count fails, and continues", async () => {
    const { count } = bind(counter());
    expect(await count(question("fail"))).toBeUndefined();
    expect(await count(question("5"))).toBe(5);
    expect(warnings).toHaveLength(1);
  });

  it.each(["throw", "exit"])(
    "the token counter answers undefined where the thread ends by %s, also for queued counts",
    async (word) => {
      const { count } = bind(counter());
      const asked = [word, "1", "2"].map((each) => count(question(each)));
      expect(await Promise.all(asked)).toEqual([undefined, undefined, undefined]);
      expect(await count(question("3"))).toBeUndefined();
      expect(warnings).toHaveLength(1);
    },
  );

  it("the token counter answers undefined where a count takes too long", async () => {
    const { count } = bind(counter({ script, timeoutMs: 50 }));
    expect(await count(question("hang"))).toBeUndefined();
  });

  it("the token counter answers undefined where no thread can be started", async () => {
    const { count } = bind(counter({ script: new URL("none.ts", import.meta.url) }));
    expect(await count(question("1"))).toBeUndefined();
  });

  it("the token counter answers undefined for a text that is too long, and beyond the queue limit", async () => {
    const { count } = bind(counter());
    expect(await count(question("1".repeat(countBytesMax + 1)))).toBeUndefined();
    const asked = Array.from({ length: countQueueMax + 2 }, (_, at) =>
      runInAccountContext(accountOf(String(at)), () => count(question(String(at)))),
    );
    const counts = await Promise.all(asked);
    expect(counts.filter((each) => each === undefined)).toHaveLength(1);
  });

  it("the token counter answers undefined beyond the share of an account, while others count (R-LIM-2)", async () => {
    const { count } = bind(counter());
    const greedy = Array.from({ length: countAccountMax + 2 }, (_, at) =>
      runInAccountContext(accountOf("greedy"), () => count(question(String(at)))),
    );
    const other = runInAccountContext(accountOf("other"), () => count(question("7")));
    expect((await Promise.all(greedy)).filter((each) => each === undefined)).toHaveLength(1);
    expect(await other).toBe(7);
  });

  it("texts of accounts are counted in turns: one that has many delays another by one text (R-LIM-2)", async () => {
    const { count } = bind(counter());
    const order: string[] = [];
    const ask = (accountId: string, word: string): Promise<unknown> =>
      runInAccountContext(accountOf(accountId), () => count(question(word))).then(() =>
        order.push(`${accountId} ${word}`),
      );
    const greedy = ["1", "2", "3", "4"].map((word) => ask("greedy", word));
    await Promise.all([...greedy, ask("other", "7"), ask("third", "8")]);
    expect(order).toEqual(["greedy 1", "greedy 2", "other 7", "third 8", "greedy 3", "greedy 4"]);
  });

  it("a text that takes too long ends the counts of its account only (R-LIM-2)", async () => {
    const { count } = bind(counter({ script, timeoutMs: 3_000, deadlineMs: 60_000 }));
    const ask = (accountId: string, word: string): Promise<number | undefined> =>
      runInAccountContext(accountOf(accountId), () => count(question(word)));
    const slow = [ask("slow", "hang"), ask("slow", "1")];
    const other = ask("other", "7");
    expect(await Promise.all(slow)).toEqual([undefined, undefined]);
    expect(await ask("slow", "2")).toBeUndefined();
    expect(await other).toBe(7);
    expect(await ask("other", "8")).toBe(8);
  });

  it("the token counter answers undefined at the deadline, the time in the queue included, and the thread goes on", async () => {
    const { count } = bind(counter({ script, timeoutMs: 60_000, deadlineMs: 50 }));
    const asked = ["hang", "1"].map((each) => count(question(each)));
    expect(await Promise.all(asked)).toEqual([undefined, undefined]);
    expect(warnings).toEqual([]);
  });

  it("once it is closed, also for queued counts", async () => {
    const made = counter({ script, timeoutMs: 60_000 });
    const asked = made.count(question("hang"));
    await made.close();
    expect(await asked).toBeUndefined();
    expect(await made.count(question("1"))).toBeUndefined();
  });
});

function bind(made: TokenCounter): Pick<TokenCounter, "count"> {
  return { count: (asked) => made.count(asked) };
}

function accountOf(accountId: string): Caller {
  return { kind: "key", accountId, keyId: "k", models: undefined };
}
