import { afterAll, beforeAll, expect, test } from "vitest";
import { UsageGroup } from "../../../../gen/uas/billing/v1/usage_pb.ts";
import { UsageService } from "../../../../gen/uas/billing/v1/usage_service_pb.ts";
import { createUsageService } from "../../../../src/billing/calls/usage-service.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import type { Config } from "../../../../src/config/config.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Billing, openBilling } from "../harness.ts";
import { rpcsOf } from "../rpcs.ts";
import { type Caller, operator } from "../../../../src/core/caller.ts";

let billing: Billing;
beforeAll(async () => void (billing = await openBilling()));
afterAll(() => billing.close());

const customer = (accountId: string): Caller => ({ kind: "session", accountId });

const attempt = {
  vendor: "slow",
  error_code: "upstream_timeout",
  duration_ms: 9,
  vendor_cost: "3",
};

test("revenue, vendor cost, abandoned attempts, loss and margin add up by model, vendor and account", async () => {
  const [rich, poor] = [await billing.account(1_000n), await billing.account(30n)];
  const [first, second, third] = [newId(), newId(), newId()];
  for (const [account, id] of [
    [rich, first],
    [rich, second],
    [poor, third],
  ] as const) {
    await billing.send({ accountId: account, holds: [{ id, amountNanos: 20n }] });
  }
  const record = { model: "m", vendor: "a", held: "20" };
  await billing.send({
    accountId: rich,
    settles: [[first, 20n, { ...record, vendor_cost: "12" }]],
  });
  const free = { ...record, vendor: "b", vendor_cost: "5", attempts: [attempt] };
  await billing.send({ accountId: rich, settles: [[second, 0n, free]] });
  // 20 were held, 10 are left, 45 are charged: 15 are lost.
  await billing.send({
    accountId: poor,
    settles: [[third, 45n, { ...record, vendor_cost: "40" }]],
  });

  const read = async (group: UsageGroup, who: Caller = operator, accountId = "") => {
    const rpcs = rpcsOf(
      UsageService,
      createUsageService({ clock: systemClock, pool: billing.pool, config: { models: new Map() } }),
      who,
    );
    const fromTime = timestampFromMs(Date.now() - 3_600_000);
    const { series, totals } = await rpcs.getUsageSeries({ accountId, fromTime, group });
    const of = (sums: typeof totals) => [
      ...[sums?.cost, sums?.vendorCost, sums?.attemptCost, sums?.loss, sums?.margin].map((each) =>
        Number(each?.amountNanos),
      ),
    ];
    const found = series.map((each): [string, number[]] => [each.group, of(each.totals)]);
    return { ...Object.fromEntries(found), total: of(totals) };
  };
  const total = [65, 57, 3, 15, -10];
  expect(await read(UsageGroup.MODEL)).toEqual({ m: total, total });
  expect(await read(UsageGroup.VENDOR)).toEqual({
    a: [65, 52, 0, 15, -2],
    b: [0, 5, 0, 0, -5],
    slow: [0, 0, 3, 0, -3],
    total,
  });
  expect(await read(UsageGroup.ACCOUNT)).toEqual({
    [rich]: [20, 17, 3, 0, 0],
    [poor]: [45, 40, 0, 15, -10],
    total,
  });
  expect((await read(UsageGroup.MODEL, operator, rich)).total).toEqual([20, 17, 3, 0, 0]);
  // Customers see neither costs nor vendors.
  const own = await read(UsageGroup.MODEL, customer(rich), rich);
  expect(own.total).toEqual([20, Number.NaN, Number.NaN, Number.NaN, Number.NaN]);
  for (const group of [UsageGroup.VENDOR, UsageGroup.ACCOUNT]) {
    await expect(read(group, customer(rich), rich)).rejects.toThrow("only operators group usage");
  }
  await billing.expectClean();
});

test("a cost that is not known is not 0: its revenue is stated, and no margin counts it", async () => {
  const account = await billing.account(1_000n);
  const now = Date.now();
  // Of the last full hour, which is read from the hourly sums, and of the current one.
  for (const [age, model] of [
    [3_600_000, "unknown"],
    [0, "unknown"],
    [3_600_000, "free"],
  ] as const) {
    const id = idOf(now - age);
    await billing.send({ accountId: account, holds: [{ id, amountNanos: 20n }] });
    const vendorCost = model === "free" ? { vendor_cost: "0" } : {};
    const record = { model, vendor: "own", held: "20", ...vendorCost };
    await billing.send({ accountId: account, settles: [[id, 20n, record]] });
  }
  const costs = [{ fromMs: 0, price: {} }];
  const models = new Map([["free", { routes: [{ vendor: "own", model: "m", costs }] }]]);
  const config = { models } as unknown as Pick<Config, "models">;
  const service = createUsageService({ clock: systemClock, pool: billing.pool, config });
  const rpcs = rpcsOf(UsageService, service, operator);
  const fromTime = timestampFromMs(now - 3 * 3_600_000);
  const range = { accountId: account, fromTime, group: UsageGroup.MODEL };
  const { series, totals } = await rpcs.getUsageSeries(range);
  const of = (sums: typeof totals) =>
    [sums?.cost, sums?.uncosted, sums?.margin].map((each) => Number(each?.amountNanos));
  expect(series.map((each) => [each.group, ...of(each.totals)])).toEqual([
    ["unknown", 40, 40, 0],
    ["free", 20, 0, 20],
  ]);
  expect(of(totals)).toEqual([60, 40, 20]);
});

/** A new UUIDv7 of a time. */
function idOf(ms: number): string {
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}${newId().slice(13)}`;
}
