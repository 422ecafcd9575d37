/** `uas usage`. */
import { createClient, type Transport } from "@connectrpc/connect";
import { type Command, InvalidArgumentError } from "commander";
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
  readonly account: string;
  readonly since: ReturnType<typeof pastArgument>;
  readonly until?: ReturnType<typeof pastArgument>;
  readonly bucket: UsageBucket;
  readonly by: UsageGroup;
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
  none: UsageGroup.NONE,
};

/** Adds the command. */
export function addUsageCommand(program: Command, { context, print }: CliTools): void {
  program
    .command("usage")
    .description("show what an account used and was charged, over time")
    .requiredOption("--account <account>", "account id")
    .option("--since <time>", "from when, such as 30d ago", past, past("30d"))
    .option("--until <time>", "until when; default: now", past)
    .option("--bucket <length>", "hour, day, week or month", wordOf(buckets), UsageBucket.DAY)
    .option("--by <what>", "model, key or none", wordOf(groups), UsageGroup.MODEL)
    .option("--zone <name>", "the time zone that days begin in, such as Asia/Shanghai", "UTC")
    .action(async (options: Options) => {
      print(await withBackend(context, ({ transport }) => showUsage(transport, options)));
    });
}

async function showUsage(transport: Transport, options: Options): Promise<Output> {
  const { account: accountId, since, until, bucket, by, zone } = options;
  // An unknown account has no usage; a mistyped id should not look like that.
  await createClient(AccountService, transport).getAccount({ accountId });
  const answer = await createClient(UsageService, transport).getUsageSeries({
    accountId,
    fromTime: since,
    ...(until && { toTime: until }),
    bucket,
    group: by,
    timeZone: zone,
  });
  const points = pointsOf(answer);
  const json = { points, totals: sumsJson(answer.totals) };
  const rows = [...points, { startTime: "total", group: null, ...json.totals }].map((point) => [
    cell(point.startTime),
    cell(point.group),
    String(point.calls),
    String(point.failedCalls),
    String(point.inputTokens),
    String(point.cachedInputTokens),
    String(point.outputTokens),
    point.cost,
  ]);
  const head = ["FROM", "GROUP", "CALLS", "FAILED", "IN", "CACHED", "OUT", "COST"];
  return { json, text: table(head, rows) };
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
