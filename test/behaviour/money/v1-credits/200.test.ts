/**
 * GET /v1/key and /v1/credits: what a key and its account have spent, in the form that OpenRouter's
 * clients read.
 */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Budget, BudgetPeriod } from "../../../../gen/uas/type/v1/budget_pb.ts";
import { expect, it } from "vitest";
import { formatUsd } from "../../../../src/core/money.ts";
import { priceDefault } from "../../../support/gateway.ts";
import { answer } from "../../../support/upstream/behaviour.ts";
import { ask, errorOf, json, newRequestId, useGateway } from "../../harness.ts";

const fixture = useGateway(() => ({
  models: { "public-model": {}, dear: { price: { ...priceDefault, request: 7_000_000_001n } } },
}));

function get(path: string, key: string) {
  const headers = { authorization: `Bearer ${key}` };
  return fixture.send(path, { method: "GET", headers });
}

async function dataOf(path: string, key: string): Promise<Record<string, unknown>> {
  const reply = await get(path, key);
  expect(reply.status, reply.body.toString()).toBe(200);
  expect(reply.headers["content-type"]).toContain("application/json");
  return json(reply)["data"] as Record<string, unknown>;
}

/** Makes a call; resolves to its charge in nano-USD, once it is settled. */
async function spend(key: string, model = "public-model"): Promise<bigint> {
  fixture.upstream.script(answer());
  const id = newRequestId();
  const headers = { authorization: `Bearer ${key}`, "x-request-id": id };
  expect((await fixture.chat({ ...ask, model }, headers)).status).toBe(200);
  return (await fixture.gateway.call(id)).cost?.amountNanos ?? 0n;
}

it("show a new key that nothing was spent", async () => {
  const { key, keyId } = await fixture.gateway.customer({ balanceNanos: 1_500_000_000n });
  const { key: stored } = await fixture.gateway.keys.getKey({ keyId });
  expect(await dataOf("/v1/key", key)).toEqual({
    label: stored?.name || stored?.masked,
    usage: 0,
    limit: null,
    limit_remaining: null,
    limit_reset: null,
    budgets: [],
    expires_at: null,
    is_free_tier: false,
    is_provisioning_key: false,
    rate_limit: { requests: -1, interval: "10s" },
  });
  expect(await dataOf("/v1/credits", key)).toEqual({ total_credits: 1.5, total_usage: 0 });
});

it("write every digit of amounts that a JavaScript number cannot hold", async () => {
  const { key, accountId } = await fixture.gateway.customer({ balanceNanos: 1n });
  for (let step = 0; step < 20; step++) {
    const reference = `large-${step}`;
    const amount = { currencyCode: "USD", amountNanos: 999_999_999_999_999n };
    await fixture.gateway.billing.topUp({ accountId, amount, reference });
  }
  const text = (await get("/v1/credits", key)).body.toString();
  expect(text).toBe('{"data":{"total_credits":19999999.999999981,"total_usage":0}}');
});

it("show the spending of one key and of all keys of the account", async () => {
  const { key, accountId } = await fixture.gateway.customer({ balanceNanos: 20_000_000_000n });
  const other = await fixture.gateway.keys.createKey({ accountId, name: "second" });
  const first = await spend(key);
  const second = await spend(other.secret, "dear");
  expect(first).toBeGreaterThan(0n);
  const usages = await Promise.all(
    [key, other.secret].map(async (each) => (await dataOf("/v1/key", each))["usage"]),
  );
  expect(usages).toEqual([first, second].map((nanos) => Number(formatUsd(nanos))));
  await fixture.gateway.keys.deleteKey({ keyId: other.key?.keyId ?? "" });
  const text = (await get("/v1/credits", key)).body.toString();
  const { balance } = await fixture.gateway.money(accountId);
  const [total, used] = [balance + first + second, first + second].map(formatUsd);
  expect(text).toBe(`{"data":{"total_credits":${total},"total_usage":${used}}}`);
  expect(total).toBe("20");
});

it("show a key that has used up its limit that nothing is left", async () => {
  const keyLimitNanos = 7_100_000_000n;
  const { key, keyId } = await fixture.gateway.customer({ keyLimitNanos });
  const spent = await spend(key, "dear");
  const limited = await dataOf("/v1/key", key);
  const left = Number(formatUsd(keyLimitNanos - spent));
  expect(limited).toMatchObject({ limit: 7.1, limit_remaining: left });
  const key1 = { keyId, spendLimit: { currencyCode: "USD", amountNanos: 1n }, name: "Büro" };
  const updateMask = { paths: ["spend_limit", "name"] };
  await fixture.gateway.keys.updateKey({ key: key1, updateMask });
  const told = await dataOf("/v1/key", key);
  expect(told).toMatchObject({ label: "Büro", limit: 1e-9, limit_remaining: 0 });
});

it("show the budgets of a key; without a spend limit, the one with the least left is its limit", async () => {
  const { key, keyId } = await fixture.gateway.customer();
  const usd = (amountNanos: bigint) => ({ currencyCode: "USD", amountNanos });
  const budgets = [
    { period: BudgetPeriod.DAY, amount: usd(2_000_000_000n) },
    { period: BudgetPeriod.MONTH, amount: usd(1_500_000_000n), timeZone: "Asia/Shanghai" },
  ];
  const updateMask = { paths: ["budgets"] };
  const updated = await fixture.gateway.keys.updateKey({ key: { keyId, budgets }, updateMask });
  const spent = await spend(key);
  const left = Number(formatUsd(1_500_000_000n - spent));
  const [usage, resets] = [Number(formatUsd(spent)), updated.key?.budgets.map(resetOf)];
  expect(await dataOf("/v1/key", key)).toMatchObject({
    limit: 1.5,
    limit_remaining: left,
    limit_reset: "monthly",
    budgets: [
      { reset: "daily", limit: 2, usage, resets_at: resets?.[0], time_zone: "UTC" },
      { limit: 1.5, usage, remaining: left, resets_at: resets?.[1], time_zone: "Asia/Shanghai" },
    ],
  });
  const spendLimit = usd(3_000_000_000n);
  await fixture.gateway.keys.updateKey({
    key: { keyId, spendLimit },
    updateMask: { paths: ["spend_limit"] },
  });
  expect(await dataOf("/v1/key", key)).toMatchObject({ limit: 3, limit_reset: null });
});

function resetOf({ resetTime }: Budget): string | undefined {
  return resetTime && timestampDate(resetTime).toISOString();
}

it("show when the key expires", async () => {
  const { accountId } = await fixture.gateway.customer();
  const seconds = BigInt(Math.floor(Date.now() / 1000) + 3_600);
  const { secret } = await fixture.gateway.keys.createKey({
    accountId,
    expireTime: { seconds, nanos: 0 },
  });
  const { expires_at: expiresAt } = await dataOf("/v1/key", secret);
  expect(expiresAt).toBe(new Date(Number(seconds) * 1000).toISOString());
});

it("answer a customer without money, also under /v1/v1", async () => {
  const { key } = await fixture.gateway.customer({ balanceNanos: 1n });
  expect(await dataOf("/v1/v1/credits", key)).toEqual({ total_credits: 1e-9, total_usage: 0 });
  expect(await dataOf("/v1/v1/key", key)).toMatchObject({ usage: 0 });
});

it.each(["/v1/key", "/v1/credits"])("%s refuses unknown keys and none with 401", async (path) => {
  const unknown = await get(path, `uas_${"0".repeat(32)}`);
  expect(unknown.status).toBe(401);
  expect(errorOf(unknown)["message"]).toBe("Invalid API Key");
  const reply = await fetch(`${fixture.gateway.url}${path}`);
  expect(reply.status).toBe(401);
});
