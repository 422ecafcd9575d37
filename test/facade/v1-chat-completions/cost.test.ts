/** What calls cost, to the nano-USD, against sums made by hand (R-MON-1). */
import { expect, it } from "vitest";
import { priceDefault } from "../../support/gateway.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import type { WireUsage } from "../../support/upstream/chat.ts";
import { ask, newRequestId, useGateway } from "../harness.ts";

const half = { ...priceDefault, input: 500_000n, cachedInput: undefined, output: 500_000n };
const fixture = useGateway(() => ({
  models: {
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
  ["public-model", usage(123_456_789, 987_654), 123_456_789n * 250n + 987_654n * 2_000n],
  // One rounding, down, for the whole call: halves of two prices add up.
  ["half-a-nano", usage(1, 1), 1n],
  ["half-a-nano", usage(1, 2), 1n],
  ["half-a-nano", usage(0, 1), 0n],
  ["per-request", usage(5, 5), 3_000_001n],
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
    await expect
      .poll(() => fixture.gateway.money(fixture.customer.accountId))
      .toEqual({
        balance: before.balance - cost,
        available: before.balance - cost,
        held: 0n,
      });
  }
});

it("never takes more than there is: the shortfall is the platform's (R-MON-3)", async () => {
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
