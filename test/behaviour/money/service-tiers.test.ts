/**
 * R-TXT-13: a call is charged by the service tier that its reply names, and held by the most
 * expensive tier that it may get.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { PriceConfig } from "../../../src/config/config.ts";
import { priceDefault } from "../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../support/plain-vendor.ts";
import { asksForStream, textReply } from "../../support/text-replies.ts";
import { newRequestId, useGateway } from "../harness.ts";

const state: { vendor?: PlainVendor; tier: string | undefined } = { tier: undefined };

beforeAll(async () => {
  state.vendor = await startPlainVendor((request) => {
    const usage = { prompt_tokens: 10, completion_tokens: 5 };
    const members = state.tier === undefined ? {} : { service_tier: state.tier };
    return textReply("chat", { text: "Hello", usage, members }, asksForStream(request));
  });
});
afterAll(() => state.vendor?.close());

const scaled = (factor: bigint): PriceConfig => ({
  ...priceDefault,
  input: (priceDefault.input ?? 0n) * factor,
  output: (priceDefault.output ?? 0n) * factor,
});
/** Cost of such a reply at the standard tier: 10 × 250 + 5 × 2,000 nano-USD. */
const standardNanos = 12_500n;

const fixture = useGateway(() => {
  const routes = [
    {
      vendor: "sim",
      model: "vendor-model",
      costs: [
        {
          fromMs: -Infinity,
          price: { ...priceDefault, serviceTiers: { priority: { ...scaled(2n) } } },
        },
      ],
    },
  ];
  return {
    vendors: { sim: { baseUrl: `${state.vendor?.url ?? ""}/v1`, apiKey: "sk-tiers" } },
    models: {
      plain: { routes: [{ vendor: "sim", model: "vendor-model" }] },
      tiered: {
        routes,
        price: {
          ...priceDefault,
          serviceTiers: {
            flex: { ...priceDefault, input: 125_000_000n, serviceTier: "flex" },
            priority: { ...scaled(3n), serviceTier: "priority" },
          },
        },
      },
    },
  };
});

async function ask(model: string, service_tier: string | undefined, stream: boolean) {
  const id = newRequestId();
  const reply = await fixture.send("/v1/chat/completions", {
    method: "POST",
    headers: { "x-request-id": id, "content-type": "application/json" },
    body: JSON.stringify({
      ...{ model, stream, max_tokens: 100, service_tier },
      messages: [{ role: "user", content: "Hi" }],
    }),
  });
  return { reply, id };
}

async function charged(asked: string | undefined, named: string | undefined, stream: boolean) {
  state.tier = named;
  const { reply, id } = await ask("tiered", asked, stream);
  expect(reply.status).toBe(200);
  const { callId } = await fixture.gateway.call(id);
  const { receipt } = await fixture.gateway.callLog.getCall({
    call: { case: "callId", value: callId },
  });
  if (receipt === undefined) throw new Error("no receipt");
  expect(receipt.recomputed).toEqual(receipt.amount);
  const costNanos = receipt.amount?.amountNanos ?? 0n;
  return { costNanos, receipt, vendorCostNanos: receipt.vendorCost?.amountNanos };
}

const flexNanos = standardNanos - 1_250n;
const priorityNanos = 3n * standardNanos;

it.each([
  ["flex", "flex", flexNanos, "flex"],
  ["flex", "default", standardNanos, ""],
  // Some vendors ignore the tier, and do not report it.
  ["flex", undefined, standardNanos, ""],
  ["priority", "priority", priorityNanos, "priority"],
  ["priority", "default", standardNanos, ""],
  ["priority", undefined, priorityNanos, "priority"],
  ["fast", "priority", priorityNanos, "priority"],
  ["auto", "flex", flexNanos, "flex"],
  ["auto", undefined, priorityNanos, "priority"],
  ["default", "default", standardNanos, ""],
  // The tier of the operator's project.
  [undefined, "priority", priorityNanos, "priority"],
  [undefined, undefined, standardNanos, ""],
] as const)(
  "a request for the tier %s that is served at %s is charged by its price",
  async (asked, named, costNanos, tier) => {
    for (const stream of [false, true]) {
      const found = await charged(asked, named, stream);
      expect([found.costNanos, found.receipt.price?.serviceTier]).toEqual([costNanos, tier]);
      // So is the vendor's cost, as far as it has prices of tiers.
      const isDearer = named === "priority";
      expect(found.vendorCostNanos).toBe(isDearer ? 2n * standardNanos : standardNanos);
    }
  },
);

it("the most expensive tier that a request may get is held", async () => {
  const heldFor = async (asked: string | undefined) => {
    const { receipt } = await charged(asked, "default", false);
    return Number(receipt.holds[0]?.held?.amountNanos ?? 0n);
  };
  const standard = await heldFor("default");
  // The word itself counts as some bytes of the request.
  const factorOf = async (asked: string | undefined) =>
    Math.round((10 * (await heldFor(asked))) / standard) / 10;
  expect(await factorOf("flex")).toBe(1);
  expect(await factorOf(undefined)).toBe(1);
  expect(await factorOf("priority")).toBe(3);
  expect(await factorOf("auto")).toBe(3);
});

it.each([
  ["plain", "priority"],
  ["plain", "fast"],
  ["tiered", "ultrafast"],
  ["tiered", "batch"],
  ["tiered", "turbo"],
])("the model %s refuses the tier %s, which has no price", async (model, tier) => {
  const before = state.vendor?.requests.length;
  const { reply } = await ask(model, tier, false);
  expect(reply.status).toBe(400);
  expect(JSON.parse(reply.body.toString())).toMatchObject({ error: { param: "service_tier" } });
  expect(state.vendor?.requests.length).toBe(before);
});

it.each(["priority", "turbo"])(
  "a reply of the tier %s, without a price, raises an alarm",
  async (tier) => {
    state.tier = tier;
    const { reply, id } = await ask("plain", undefined, false);
    expect(reply.status).toBe(200);
    expect((await fixture.gateway.call(id)).cost?.amountNanos).toBe(standardNanos);
    const alarm = fixture.gateway.log.find((line) => line.includes(`service_tier ${tier}`));
    expect(alarm).toContain('"vendor":"sim"');
  },
);

it("a background response is refused tiers that only calls are charged by", async () => {
  const reply = await fixture.send("/v1/responses", {
    method: "POST",
    body: JSON.stringify({
      ...{ model: "tiered", input: "Hi", background: true, service_tier: "priority" },
    }),
  });
  expect([reply.status, reply.body.toString()]).toEqual([
    400,
    expect.stringContaining("service_tier"),
  ]);
});

it("the list of models has the price of each tier", async () => {
  const reply = await fixture.send("/api/ai/models", { method: "GET" });
  const { models } = JSON.parse(reply.body.toString()) as {
    models: readonly { modelKey: string; price: { serviceTiers?: object } }[];
  };
  const tiered = models.find(({ modelKey }) => modelKey === "tiered");
  expect(tiered?.price.serviceTiers).toMatchObject({
    flex: { input: "0.125" },
    priority: { input: "0.75", output: "6" },
  });
});
