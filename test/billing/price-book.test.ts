import { afterAll, beforeAll, expect, test } from "vitest";
import { createPriceBook } from "../../src/billing/price-book.ts";
import { callCost, parsePrice } from "../../src/billing/price.ts";
import { type Billing, openBilling } from "./harness.ts";

let billing: Billing;
beforeAll(async () => void (billing = await openBilling()));
afterAll(() => billing.close());

test("R-MON-1: a price is stored when it is first loaded, and a charge can be computed again from it", async () => {
  const price = parsePrice({ input: "250000000", output: "2000000000" });
  const dearer = parsePrice({ input: "500000000", output: "2000000000" });
  const books = [0, 1].map(() => createPriceBook({ pool: billing.pool }));
  // Two nodes at once, the same price twice, and again later.
  await Promise.all(books.map((book) => book.load([price, { ...price }])));
  const [book] = books;
  if (!book) throw new Error("no book");
  await book.load([price, dearer]);
  await book.load([]);
  const { rows } = await billing.pool.query("select version from price_version");
  expect(rows).toHaveLength(2);
  const usage = { inputTokens: 100, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 9 };
  expect(await book.recompute(book.version(price), usage)).toBe(callCost(price, usage));
  expect(await book.find(book.version(dearer))).toEqual(dearer);
  expect(await book.recompute("0000000000000000", usage)).toBeUndefined();
});
