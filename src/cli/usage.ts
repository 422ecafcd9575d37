/** `uas usage`. */
import { createClient, type Transport } from "@connectrpc/connect";
import { type Command, InvalidArgumentError, Option } from "commander";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { UsageBucket, UsageGroup, type UsageTotals } from "../../gen/uas/billing/v1/usage_pb.ts";
import {
  type GetUsageSeriesResponse,
  UsageService,
} from "../../gen/uas/billing/v1/usage_service_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, table } from "./output.ts";
import { timeText, usdText, pastArgument } from "./values.ts";

interface Options {
  readonly account?: string;
  readonly all: boolean;
  readonly since: ReturnType<typeof pastArgument>;
  readonly until?: ReturnType<typeof pastArgument>;
  readonly bucket: UsageBucket;
  readonly group: UsageGroup;
  readonly zone: string;
}

const buckets: Readonly<Record<string, UsageBucket>> = {
  hour: UsageBucket.HOUR,
  day: UsageBucket.DAY,
  week: UsageBucket.WEEK,
  month: UsageBucket.MONTH,
};

const groups: Readonly<Record<string, UsageGroup>> = {
  model: UsageGroup.MODEL,
  key: UsageGroup.KEY,
  vendor: UsageGroup.VENDOR,
  account: UsageGroup.ACCOUNT,
  none: UsageGroup.NONE,
};

/** Adds the command. */
export function addUsageCommand(usage: Command, { context, print }: CliTools): void {
  usage
    .option("--account <account>", "account id")
    .option("--all", "all accounts, with vendor costs, losses and margin", false)
    .addOption(
      new Option("--since <time>", "start, such as 30d (ago)")
        .argParser(past)
        .default(past("30d"), "30d"),
    )
    .option("--until <time>", "end (default: now)", past)
    .addOption(
      new Option("--bucket <length>", "hour, day, week or month")
        .argParser(wordOf(buckets))
        .default(UsageBucket.DAY, "day"),
    )
    .addOption(
      new Option("--group <what>", "model, key, vendor, account or none")
        .argParser(wordOf(groups))
        .default(UsageGroup.MODEL, "model"),
    )
    .option("--zone <name>", "time zone in which days begin, such as Asia/Shanghai", "UTC")
    .action(async (options: Options, command: Command) => {
      if (options.all === (options.account !== undefined)) {
        command.error("error: write either --account <account> or --all", { exitCode: 2 });
      }
      print(await withBackend(context, ({ transport }) => showUsage(transport, options)));
    });
}

async function showUsage(transport: Transport, options: Options): Promise<Output> {
  const { account: accountId = "", all, since, until, bucket, group, zone } = options;
  // An unknown account has no usage; a mistyped id should not look like that.
  if (!all) await createClient(AccountService, transport).getAccount({ accountId });
  const answer = await createClient(UsageService, transport).getUsageSeries({
    accountId,
    fromTime: since,
    ...(until && { toTime: until }),
    bucket,
    group,
    groupLimit: groupsMax,
    timeZone: zone,
  });
  const points = pointsOf(answer);
  const json = { points, totals: sumsJson(answer.totals) };
  const sums = [...points, { startTime: "total", group: null, ...json.totals }];
  const [head, cellsOf] = all ? finances : consumption;
  const rows = sums.map((point) => [
    ...[cell(point.startTime), cell(point.group)],
    ...[String(point.calls), String(point.failedCalls)],
    ...cellsOf(point),
  ]);
  return { json, text: table(["FROM", "GROUP", "CALLS", "FAILED", ...head], rows) };
}

/** Maximum number of groups that are listed on separate lines. */
const groupsMax = 100;

type SumsJson = ReturnType<typeof sumsJson>;

/** Table columns other than time, group and counts. */
type Columns = readonly [head: readonly string[], cells: (sums: SumsJson) => string[]];

const consumption: Columns = [
  ["IN", "CACHED", "OUT", "COST"],
  ({ inputTokens, cachedInputTokens, outputTokens, cost }) => [
    ...[inputTokens, cachedInputTokens, outputTokens].map(String),
    cost,
  ],
];

const finances: Columns = [
  ["REVENUE", "COST UNKNOWN", "VENDOR COST", "ATTEMPTS", "LOSS", "MARGIN"],
  ({ cost, uncosted, vendorCost, attemptCost, loss, margin }) => [
    cost,
    shareText(uncosted, cost),
    cell(vendorCost),
    attemptCost,
    loss,
    cell(margin),
  ],
];

/** A part of the revenue in percent; a hyphen for none. */
function shareText(part: string, whole: string): string {
  const share = Number(part) / Number(whole);
  return Number(part) === 0 ? "-" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** Sorted by time; within a bucket the largest group first. */
function pointsOf({ series, bucketTimes }: GetUsageSeriesResponse) {
  const points = series.flatMap(({ group, rest, points: own }) =>
    own.map(({ bucket, totals }) => ({
      bucket,
      group: rest ? "(rest)" : group || null,
      sums: sumsJson(totals),
    })),
  );
  return points
    .toSorted((a, b) => a.bucket - b.bucket)
    .map(({ bucket, group, sums }) => ({
      startTime: timeText(bucketTimes[bucket]),
      group,
      ...sums,
    }));
}

/** Counts are plain numbers: no account comes near 2^53 of anything. */
function sumsJson(totals: UsageTotals | undefined) {
  const uncosted = usdText(totals?.uncosted);
  // Without any known cost, a 0 would look like one.
  const isUnknown = uncosted !== "0" && uncosted === usdText(totals?.cost);
  const known = (money: UsageTotals["vendorCost"]) => (isUnknown ? null : usdText(money));
  const count = (value: bigint | undefined): number => Number(value ?? 0n);
  return {
    calls: count(totals?.callCount),
    failedCalls: count(totals?.failedCallCount),
    inputTokens: count(totals?.inputTokens),
    cachedInputTokens: count(totals?.cachedInputTokens),
    cacheWriteTokens: count(totals?.cacheWriteTokens),
    outputTokens: count(totals?.outputTokens),
    reasoningTokens: count(totals?.reasoningTokens),
    images: count(totals?.imageCount),
    seconds: Number(totals?.secondMicros ?? 0n) / 1_000_000,
    cost: usdText(totals?.cost),
    vendorCost: known(totals?.vendorCost),
    attemptCost: usdText(totals?.attemptCost),
    loss: usdText(totals?.loss),
    margin: known(totals?.margin),
    uncosted,
  };
}

/** Takes one argument only, since Commander passes the previous value too. */
function past(text: string): ReturnType<typeof pastArgument> {
  return pastArgument(text);
}

function wordOf<Value>(values: Readonly<Record<string, Value>>): (text: string) => Value {
  return (text) => {
    const value = Object.hasOwn(values, text) ? values[text] : undefined;
    if (value !== undefined) return value;
    throw new InvalidArgumentError(`Write one of ${Object.keys(values).join(", ")}.`);
  };
}
