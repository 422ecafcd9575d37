/** Recorded calls are priced again under another document. */
import { createClient, type Client } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { openServed, type Served, stream } from "../lifecycle/served.ts";
import { operatorToken } from "../lifecycle/process.ts";

/** Calls of each customer, of 11 input and 7 output tokens. */
const calls = 3;

let served: Served;
let config: Client<typeof ConfigService>;
let document: string;
beforeAll(async () => {
  served = await openServed();
  served.configure((yaml) =>
    yaml.replace(
      "model: vendor-model",
      'model: vendor-model, cost: { input: "0.10", output: "1.00" }',
    ),
  );
  const gateway = await served.start();
  const transport = createConnectTransport({
    baseUrl: gateway.internalUrl,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${operatorToken}`);
        return next(request);
      },
    ],
  });
  config = createClient(ConfigService, transport);
  document = (await config.getConfig({})).config?.document ?? "";
  for (const _customer of [1, 2]) {
    const { key } = await served.customer();
    for (let call = 0; call < calls; call++) {
      expect((await stream(gateway.url, key, `planned-${call}`)).status).toBe(200);
    }
  }
});
afterAll(() => served?.close());

const count = BigInt(2 * calls);

/** Nano-USD of all calls at prices in USD per 1,000,000 tokens, in hundredths. */
function sum(inputCents: bigint, outputCents: bigint): bigint {
  return count * (11n * inputCents + 7n * outputCents) * 10n;
}

it("the document in force changes nothing, to the nano-dollar", async () => {
  const { total, accounts, models } = await config.planConfig({ document });
  expect(total).toMatchObject({
    calls: count,
    costedCalls: count,
    revenueBefore: { amountNanos: sum(25n, 200n) },
    revenueAfter: { amountNanos: sum(25n, 200n) },
    vendorCostBefore: { amountNanos: sum(10n, 100n) },
    vendorCostAfter: { amountNanos: sum(10n, 100n) },
  });
  expect([models.length, accounts.length]).toEqual([1, 2]);
});

it("another price and cost give the revenue, cost and margin that they would have had", async () => {
  const cheaper = document
    .replace('output: "2.00"', 'output: "1.50"')
    .replace('output: "1.00"', 'output: "0.80"');
  const { total } = await config.planConfig({ document: cheaper });
  expect(total).toMatchObject({
    revenueAfter: { amountNanos: sum(25n, 150n) },
    vendorCostAfter: { amountNanos: sum(10n, 80n) },
  });
});

it("the last of dated prices counts, or the one of a given moment", async () => {
  const dated = document.replace(
    'price: { input: "0.25", output: "2.00" }',
    'price: [{ input: "0.25", output: "2.00" }, { from: 2999-01-01, input: "0.25", output: "4.00" }]',
  );
  const last = await config.planConfig({ document: dated });
  expect(last.total?.revenueAfter?.amountNanos).toBe(sum(25n, 400n));
  const priceTime = { seconds: BigInt(Math.floor(Date.now() / 1000)), nanos: 0 };
  const now = await config.planConfig({ document: dated, priceTime });
  expect(now.total?.revenueAfter?.amountNanos).toBe(sum(25n, 200n));
});

it("calls of a model that the document lacks are counted apart; a route without cost has no margin", async () => {
  const renamed = await config.planConfig({ document: document.replace("  m:", "  other:") });
  expect(renamed).toMatchObject({ removedCalls: count, total: { calls: 0n } });
  const costless = document.replace(', cost: { input: "0.10", output: "1.00" }', "");
  const { total } = await config.planConfig({ document: costless });
  expect(total).toMatchObject({ calls: count, costedCalls: 0n });
});

it("a faulty document and a period that ends before it begins are refused", async () => {
  await expect(config.planConfig({ document: "version: 2" })).rejects.toThrow(/version/);
  const later = { seconds: BigInt(Math.floor(Date.now() / 1000) + 60), nanos: 0 };
  await expect(config.planConfig({ document, fromTime: later })).rejects.toThrow(
    /must begin before it ends/,
  );
});
