/** Prices that are remembered, and shown (R-MON-1). */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ModelPrices, PriceState } from "../../../../gen/uas/billing/v1/price_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { createPriceBook } from "../../../../src/billing/prices/pricing.ts";
import { callCost } from "../../../../src/billing/prices/cost.ts";
import { parsePrice } from "../../../../src/billing/prices/price-form.ts";
import { createBillingService } from "../../../../src/billing/service.ts";
import { operator } from "../../../../src/core/caller.ts";
import type { DatedPrice, ModelConfig, PriceConfig } from "../../../../src/config/config.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { ErrorCode } from "../../../../src/core/errors.ts";
import { always } from "../../../support/gateway.ts";
import { type Billing, openBilling } from "../harness.ts";
import { rpcs } from "../rpcs.ts";
import { newId } from "../../../../src/core/uuid.ts";

const model = (price: PriceConfig) => ({ key: "m", prices: always(price) });
const nano = (input: bigint) => parsePrice({ input: `${input}` });
const models: ReadonlyMap<string, ModelConfig> = new Map(
  ["b", "a/b", "c"].map((key) => {
    const prices: DatedPrice[] = [
      { fromMs: 1_000, price: nano(1n) },
      { fromMs: 2_000, price: nano(2n) },
      { fromMs: Date.UTC(2999), price: nano(3n) },
    ];
    const routes = [
      { vendor: "v", model: "m", costs: always(nano(1n)) },
      { vendor: "w", model: "m" },
    ];
    return [
      key,
      {
        key,
        name: key,
        type: ModelType.TEXT,
        routes,
        maxOutputTokens: 9,
        holdOutputTokens: 9,
        prices,
      },
    ];
  }),
);

let billing: Billing;
let service: ReturnType<typeof createBillingService>;
beforeAll(async () => {
  billing = await openBilling();
  service = createBillingService({
    clock: systemClock,
    pool: billing.pool,
    accountExists: async () => true,
    config: { models },
  });
});
afterAll(() => billing.close());

test("R-MON-1: a price is stored when it is first loaded, and a charge can be computed again from it", async () => {
  const price = parsePrice({ input: "250000000", output: "2000000000" });
  const dearer = parsePrice({ input: "500000000", output: "2000000000" });
  const books = [0, 1].map(() => createPriceBook({ pool: billing.pool }));
  // Two nodes at once, the same price twice, and again later.
  await Promise.all(books.map((book) => book.load([model(price), model({ ...price })])));
  const [book] = books;
  if (!book) throw new Error("no book");
  await book.load([{ key: "m", prices: [...model(price).prices, { fromMs: 1, price: dearer }] }]);
  await book.load([]);
  const { rows } = await billing.pool.query("select version from price_version");
  expect(rows).toHaveLength(2);
  const usage = { inputTokens: 100, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 9 };
  expect(await book.recompute(book.version(price), usage)).toBe(callCost(price, usage));
  expect(await book.find(book.version(dearer))).toEqual(dearer);
  expect(await book.recompute("0000000000000000", usage)).toBeUndefined();
});

test("past, current and future prices are shown, and vendor costs to operators only", async () => {
  const book = createPriceBook({ pool: billing.pool });
  const before = { fromMs: -Infinity, price: nano(9n) };
  await book.load([{ key: "b", prices: [before] }]);
  await book.load(models.values());
  const versions = (prices: ModelPrices | undefined) =>
    prices?.versions.map(({ state, price, fromTime, loadTime }) => [
      state,
      price?.input,
      fromTime && timestampMs(fromTime),
      loadTime && timestampMs(loadTime) > 1_700_000_000_000,
    ]);
  const { prices } = await rpcs(service, operator).getPrice({ modelKey: "b" });
  const listed = [
    [PriceState.PAST, "0.000000001", 1_000, true],
    [PriceState.CURRENT, "0.000000002", 2_000, true],
    [PriceState.FUTURE, "0.000000003", Date.UTC(2999), true],
  ];
  expect(versions(prices)).toEqual([[PriceState.PAST, "0.000000009", undefined, true], ...listed]);
  expect(prices?.costs).toMatchObject([
    {
      vendor: "v",
      model: "m",
      versions: [{ state: PriceState.CURRENT, price: { input: "0.000000001" } }],
    },
  ]);
  const session = rpcs(service, { kind: "session", accountId: newId() });
  expect((await session.getPrice({ modelKey: "b" })).prices).toEqual({ ...prices, costs: [] });

  const first = await session.listPrices({ pageSize: 2 });
  expect(first.prices.map(({ modelKey }) => modelKey)).toEqual(["a/b", "b"]);
  expect(versions(first.prices[0])).toEqual(listed);
  const second = await session.listPrices({ pageToken: first.nextPageToken });
  expect(second.prices.map(({ modelKey }) => modelKey)).toEqual(["c"]);
  expect([second.nextPageToken, second.prices[0]?.costs]).toEqual(["", []]);
});

test("a removed model keeps its past prices, and an unknown one is MODEL_NOT_FOUND", async () => {
  const book = createPriceBook({ pool: billing.pool });
  await book.load([{ key: "gone", prices: [{ fromMs: -Infinity, price: nano(5n) }] }]);
  const { prices } = await rpcs(service, operator).getPrice({ modelKey: "gone" });
  expect(prices?.versions.map(({ state }) => state)).toEqual([PriceState.PAST]);
  for (const modelKey of ["", "none", "a\0b", "\ud800", "__proto__"]) {
    const none = rpcs(service, operator).getPrice({ modelKey });
    await expect(none).rejects.toEqual(
      expect.objectContaining({ code: ErrorCode.MODEL_NOT_FOUND }),
    );
  }
});
