/** Accounts with a price list pay its prices, from the hold to the receipt. */
import { createClient, type Client } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, it } from "vitest";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { DatedPrice } from "../../../src/config/config.ts";
import { listPricesOf } from "../../../src/config/price-lists.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { servedKinds } from "../../../src/provider/index.ts";
import { type Customer, type Gateway, priceDefault, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";

let upstream: Upstream;
let gateway: Gateway;
let reseller: Customer;
let usual: Customer;

const always = Number.NEGATIVE_INFINITY;
const prices: DatedPrice[] = [{ fromMs: always, price: priceDefault }];
const lists = new Map([["resellers", { markup: -1_000 }]]);

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.always(answer());
  gateway = await startGateway({
    vendors: { sim: { baseUrl: upstream.baseUrl, apiKey: upstream.secret } },
    models: { "public-model": { listPrices: listPricesOf(prices, new Map(), lists) } },
    priceLists: new Set(lists.keys()),
  });
  reseller = await gateway.customer();
  usual = await gateway.customer();
});
afterAll(async () => {
  await gateway?.close();
  await upstream?.close();
});

function giveList(accountId: string, priceList: string) {
  return gateway.accounts.updateAccount({
    account: { accountId, priceList },
    updateMask: { paths: ["price_list"] },
  });
}

async function call({ key }: Customer, requestId: string) {
  const { status } = await send(`${gateway.url}/v1/chat/completions`, {
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-request-id": requestId,
    },
    body: JSON.stringify({ model: "public-model", messages: [{ role: "user", content: "Hi" }] }),
  });
  expect(status).toBe(200);
  return gateway.call(requestId);
}

/** The cost of 11 input and 7 output tokens at the usual price, in nano-USD. */
const usualNanos = 11n * 250n + 7n * 2_000n;

it("the next call of an account with a list is charged at it, and its receipt adds up", async () => {
  await giveList(reseller.accountId, "resellers");
  const record = await call(reseller, "listed");
  expect(record.cost?.amountNanos).toBe((usualNanos * 90n) / 100n);
  const receipt = await gateway.callLog.getCall({
    call: { case: "requestId", value: "listed" },
    accountId: reseller.accountId,
  });
  expect(receipt.receipt?.recomputed?.amountNanos).toBe(record.cost?.amountNanos);
  expect((await call(usual, "usual")).cost?.amountNanos).toBe(usualNanos);
});

it("the list of models shows each key the prices that it pays", async () => {
  const clientOf = ({ key }: Customer): Client<typeof InferenceService> =>
    createClient(
      InferenceService,
      createConnectTransport({
        baseUrl: gateway.url,
        httpVersion: "1.1",
        interceptors: [
          (next) => (request) => {
            request.header.set("authorization", `Bearer ${key}`);
            return next(request);
          },
        ],
      }),
    );
  const outputOf = async (customer: Customer): Promise<string | undefined> => {
    const { models } = await clientOf(customer).listModels({});
    return models[0]?.price?.output;
  };
  expect(await outputOf(usual)).toBe("2");
  expect(await outputOf(reseller)).toBe("1.8");
});

it("a list that the configuration lacks is refused, and an account returns to the usual prices", async () => {
  await expect(giveList(reseller.accountId, "resslers")).rejects.toThrow(
    /there is no price list resslers \(have: resellers\)/,
  );
  await giveList(reseller.accountId, "");
  expect((await call(reseller, "usual-again")).cost?.amountNanos).toBe(usualNanos);
});

it("a configuration without a list that accounts have is refused, and the one before stays", async () => {
  await giveList(reseller.accountId, "resellers");
  await expect(gateway.reconfigure({ priceLists: new Set() })).rejects.toThrow(
    /1 accounts have the price list resellers: keep it, or give them another one/,
  );
  expect((await call(reseller, "still-listed")).cost?.amountNanos).toBe((usualNanos * 90n) / 100n);
});

it("a markup changes every part of a price, rounded up; a model's own price in a list replaces it", () => {
  const content = `version: 1
vendors:
  v: { kind: openai-compatible, base_url: "http://127.0.0.1:1/v1" }
price_lists:
  dear: { markup: 12.5% }
  own: {}
models:
  m:
    type: TEXT
    routes: [{ vendor: v, model: m }]
    max_output_tokens: 10
    price: { input: "0.000000001", output: "2.00", tiers: [{ above: 1000, input: "4.00" }], tools: { web_search: "0.01" } }
    tiers: { flex: { output: "1.00" } }
    price_lists: { own: { input: "1.00", output: "1.50" } }
`;
  const document = { source: "uas.yaml", content };
  const options = { env: {}, cwd: "/", kinds: servedKinds };
  const model = loadConfig({ document, ...options }).models.get("m");
  const priceIn = (list: string) => model?.listPrices?.get(list)?.[0]?.price;
  expect(priceIn("dear")).toMatchObject({
    input: 2n,
    output: 2_250_000_000n,
    tiers: [{ above: 1000, input: 4_500_000_000n }],
    serviceTiers: { flex: { output: 1_125_000_000n } },
  });
  expect(priceIn("own")).toMatchObject({ input: 1_000_000_000n, output: 1_500_000_000n });
  const unknown = { ...document, content: content.replace("{ own: { input", "{ owned: { input") };
  expect(() => loadConfig({ document: unknown, ...options })).toThrow(
    /models\.m\.price_lists\.owned: there is no such price list under price_lists/,
  );
});
