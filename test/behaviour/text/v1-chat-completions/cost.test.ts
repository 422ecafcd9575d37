/** Costs of calls, to the nano-USD, compared with sums made by hand (R-MON-1). */
import { afterEach, expect, it, vi } from "vitest";
import { always, priceDefault } from "../../../support/gateway.ts";
import { answer } from "../../../support/upstream/behaviour.ts";
import type { WireUsage } from "../../../support/upstream/chat.ts";
import { ask, newRequestId, useGateway } from "../../harness.ts";

const half = { ...priceDefault, input: 500_000n, cachedInput: undefined, output: 500_000n };
const soonMs = Date.now() + 3_600_000;
const cheap = { ...priceDefault, input: 1_000_000n, output: 1_000_000n };
const fixture = useGateway(() => ({
  models: {
    "soon-dearer": {
      prices: [
        { fromMs: -Infinity, price: cheap },
        { fromMs: soonMs, price: { ...cheap, output: 7_000_000n } },
      ],
    },
    bought: {
      price: { ...cheap, input: 0n, cachedInput: 0n, cacheWrite: 0n, output: 10_000_000n },
      routes: [
        {
          vendor: "sim",
          model: "vendor-model",
          costs: always({ ...cheap, input: 0n, output: 4_000_000n }),
        },
      ],
    },
    long: {
      price: {
        ...cheap,
        reasoning: 3_000_000n,
        tiers: [{ ...cheap, above: 100, input: 2_000_000n }],
      },
    },
    "public-model": {},
    "half-a-nano": { price: half },
    "per-request": { price: { ...half, input: undefined, output: undefined, request: 3_000_001n } },
    dear: { price: { ...priceDefault, output: 600_000_000_000_000n } },
  },
}));

function usage(prompt: number, completion: number, cached = 0, written = 0): WireUsage {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
  };
}

const rows: ReadonlyArray<[model: string, usage: WireUsage, cost: bigint]> = [
  ["public-model", usage(1, 1), 250n + 2_000n],
  ["public-model", usage(1_000, 20, 400), 600n * 250n + 400n * 25n + 20n * 2_000n],
  [
    "public-model",
    usage(1_000, 20, 400, 100),
    500n * 250n + 400n * 25n + 100n * 250n + 20n * 2_000n,
  ],
  ["public-model", usage(7_654, 3_210), 7_654n * 250n + 3_210n * 2_000n],
  // One rounding, down, for the whole call: halves of two prices add up.
  ["half-a-nano", usage(1, 1), 1n],
  ["half-a-nano", usage(1, 2), 1n],
  ["half-a-nano", usage(0, 1), 0n],
  ["per-request", usage(5, 5), 3_000_001n],
  ["long", usage(100, 10), 110n],
  ["long", usage(101, 10), 212n],
  [
    "long",
    { ...usage(100, 10), completion_tokens_details: { reasoning_tokens: 4 } },
    100n + 6n + 4n * 3n,
  ],
];

it.each(rows)("%s with %o costs %d nano-USD", async (model, reported, cost) => {
  for (const stream of [false, true]) {
    fixture.upstream.script(answer({ usage: reported }));
    const id = newRequestId();
    const before = await fixture.gateway.money(fixture.customer.accountId);
    expect((await fixture.chat({ ...ask, model, stream }, { "x-request-id": id })).status).toBe(
      200,
    );
    const call = await fixture.gateway.call(id);
    expect(call.cost?.amountNanos).toBe(cost);
    expect(call.cost?.currencyCode).toBe("USD");
    const { receipt } = await fixture.gateway.callLog.getCall({
      call: { case: "callId", value: call.callId },
    });
    expect(receipt?.recomputed?.amountNanos).toBe(cost);
    await expect
      .poll(() => fixture.gateway.money(fixture.customer.accountId))
      .toEqual({
        balance: before.balance - cost,
        available: before.balance - cost,
        held: 0n,
      });
  }
});

afterEach(() => void vi.useRealTimers());

it("a later price takes effect at its moment, without a restart", async () => {
  const costs: bigint[] = [];
  const versions = new Set<string>();
  for (const nowMs of [soonMs - 1, soonMs]) {
    vi.setSystemTime(nowMs);
    fixture.upstream.script(answer({ usage: usage(10, 10) }));
    const id = newRequestId();
    await fixture.chat({ ...ask, model: "soon-dearer" }, { "x-request-id": id });
    vi.useRealTimers();
    const { cost, priceVersion } = await fixture.gateway.call(id);
    costs.push(cost?.amountNanos ?? 0n);
    versions.add(priceVersion);
  }
  expect(costs).toEqual([20n, 80n]);
  expect(versions.size).toBe(2);
});

it("the discount of the account comes off hold and charge, and not off what the vendor takes", async () => {
  const { gateway } = fixture;
  const { accountId, key } = await gateway.customer();
  const discounted = {
    account: { accountId, discountBp: 1_250 },
    updateMask: { paths: ["discount_bp"] },
  };
  await gateway.accounts.updateAccount(discounted);
  fixture.upstream.script(answer({ usage: usage(10, 1_000) }));
  const id = newRequestId();
  const headers = { authorization: `Bearer ${key}`, "x-request-id": id };
  const body = { ...ask, model: "bought", max_tokens: 2_000 };
  expect((await fixture.chat(body, headers)).status).toBe(200);
  const call = await gateway.call(id);
  const { receipt } = await gateway.callLog.getCall({
    call: { case: "callId", value: call.callId },
  });
  expect(receipt).toMatchObject({
    call: { discountBp: 1_250 },
    subtotal: "0.00001",
    amount: { amountNanos: 8_750n },
    recomputed: { amountNanos: 8_750n },
    vendorCost: { amountNanos: 4_000n },
    entries: [{ amount: { amountNanos: -8_750n }, balanceAfter: { amountNanos: 99_999_991_250n } }],
    holds: [{ held: { amountNanos: 17_500n } }, { held: { amountNanos: 0n } }],
  });
  const { values } = await gateway.app.metrics.vendorCost.get();
  expect(values).toEqual([{ labels: { model: "bought", vendor: "sim" }, value: 0.000004 }]);
});

it("a charge never takes more than there is: the shortfall is the platform's (R-MON-3)", async () => {
  // The vendor reports more than max_tokens allowed it.
  const poor = await fixture.gateway.customer({ balanceNanos: 601_000_000n });
  fixture.upstream.script(answer({ usage: usage(10, 5) }));
  const id = newRequestId();
  const headers = { authorization: `Bearer ${poor.key}`, "x-request-id": id };
  const reply = await fixture.chat({ ...ask, model: "dear", max_tokens: 1 }, headers);
  expect(reply.status).toBe(200);
  await fixture.gateway.call(id);
  expect(await fixture.gateway.money(poor.accountId)).toEqual({
    balance: 0n,
    available: 0n,
    held: 0n,
  });
});

it("charges 100 calls with one request id 100 times (R-ID-6)", async () => {
  const id = newRequestId();
  const before = await fixture.gateway.money(fixture.customer.accountId);
  await Promise.all(Array.from({ length: 100 }, () => fixture.chat(ask, { "x-request-id": id })));
  const calls = await fixture.gateway.calls(id, 100);
  expect(calls).toHaveLength(100);
  expect(new Set(calls.map(({ callId }) => callId)).size).toBe(100);
  const after = await fixture.gateway.money(fixture.customer.accountId);
  expect(before.balance - after.balance).toBe(100n * 16_750n);
});
