/** Which counter counts a request that seems too long for every route. */
import { expect, it } from "vitest";
import type { TokenCounter } from "../../../src/tokens/counter.ts";
import { RequestTokens } from "../../../src/tokens/request-tokens.ts";

it("a request that seems too long is never counted by the counter of bills, whose queue an account without money would fill (R-LIM-2)", async () => {
  const sent = Buffer.from(JSON.stringify({ messages: [{ content: "word ".repeat(1_000) }] }));
  const counted: string[] = [];
  const counterOf = (name: string): TokenCounter => ({
    count: () => Promise.resolve(counted.push(name) * 1_000),
    close: () => Promise.resolve(),
  });
  const tokens = new RequestTokens({
    text: { bytes: sent.length },
    routes: [
      {
        route: { vendor: "v", model: "gpt-4o", maxContext: 100 },
        dialect: undefined,
        detachedReadMs: 0,
      },
    ],
    body: [sent],
    counter: counterOf("bills"),
  });
  expect(tokens.isOverlong).toBe(true);
  expect(await tokens.countedOverlong(counterOf("free"))).toBe(1_000);
  expect(counted).toEqual(["free"]);
});
