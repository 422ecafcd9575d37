import type { ConnectRouter } from "@connectrpc/connect";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UsageBucket, UsageGroup } from "../../../gen/uas/billing/v1/usage_pb.ts";
import {
  type GetUsageSeriesRequest,
  UsageService,
} from "../../../gen/uas/billing/v1/usage_service_pb.ts";
import { accountId, usd } from "./sample.ts";
import { run, runJson } from "./support.ts";

const days = ["2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z"] as const;
const sums = (cost: bigint) => ({
  callCount: 2n,
  failedCallCount: 1n,
  inputTokens: 7n,
  secondMicros: 1_500_000n,
  cost: usd(cost),
});
const answer = {
  bucketTimes: days.map((day) => timestampFromDate(new Date(day))),
  series: [
    { group: "fast-1", points: [0, 1].map((bucket) => ({ bucket, totals: sums(500_000_000n) })) },
    { rest: true, points: [{ bucket: 0, totals: sums(1n) }] },
  ],
  totals: sums(1_000_000_001n),
};

function world(asked: GetUsageSeriesRequest[] = []) {
  return {
    routes: (router: ConnectRouter) => {
      router.service(AccountService, { getAccount: () => ({ account: { accountId } }) });
      router.service(UsageService, {
        getUsageSeries: (request) => {
          asked.push(request);
          return answer;
        },
      });
    },
  };
}

it("usage is shown in the order of time, with the sums of all", async () => {
  const asked: GetUsageSeriesRequest[] = [];
  const { json } = await runJson(["usage", "--account", accountId], world(asked));
  expect(json).toMatchObject({
    points: [
      { startTime: days[0], group: "fast-1", calls: 2, failedCalls: 1, seconds: 1.5, cost: "0.5" },
      { startTime: days[0], group: "(rest)", inputTokens: 7, cost: "0.000000001" },
      { startTime: days[1], group: "fast-1", cost: "0.5" },
    ],
    totals: { calls: 2, cost: "1.000000001" },
  });
  expect(asked).toMatchObject([
    { accountId, bucket: UsageBucket.DAY, group: UsageGroup.MODEL, timeZone: "UTC" },
  ]);
  const ageMs = Date.now() - Number(asked[0]?.fromTime?.seconds ?? 0n) * 1_000;
  expect(Math.round(ageMs / 86_400_000)).toBe(30);
});

it("usage takes a range, a bucket, a zone and a grouping", async () => {
  const asked: GetUsageSeriesRequest[] = [];
  const options = ["--since", "2026-11-01", "--until", "2026-11-02T00:00:00+08:00"];
  const how = ["--bucket", "hour", "--group", "key", "--zone", "Asia/Shanghai"];
  const { out } = await run(["usage", "--account", accountId, ...options, ...how], world(asked));
  expect(out).toMatch(/^FROM .*COST\n/);
  expect(out).toMatch(/\ntotal .* 1\.000000001\n$/);
  expect(asked).toMatchObject([
    {
      fromTime: timestampFromDate(new Date("2026-11-01T00:00Z")),
      toTime: timestampFromDate(new Date("2026-11-01T16:00Z")),
      bucket: UsageBucket.HOUR,
      group: UsageGroup.KEY,
      timeZone: "Asia/Shanghai",
    },
  ]);
});

it.each([
  ["--bucket", "year"],
  ["--group", "toString"],
  ["--since", "yesterday"],
])("usage refuses %s %s as wrong usage", async (option, value) => {
  const { code } = await run(["usage", "--account", accountId, option, value], world());
  expect(code).toBe(2);
});
