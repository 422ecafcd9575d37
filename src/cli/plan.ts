/** `uas plan`: what another configuration would have earned. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { type Command, Option } from "commander";
import type { PlanGroup, PlanSums } from "../../gen/uas/config/v1/config_pb.ts";
import { ConfigService } from "../../gen/uas/config/v1/config_service_pb.ts";
import { formatUsd } from "../core/money.ts";
import { withBackend } from "./backend.ts";
import { readMerged } from "./merged-file.ts";
import type { CliContext, CliTools, Output } from "./context.ts";
import { table } from "./output.ts";
import { countArgument, pastArgument, timeText, whenArgument } from "./values.ts";

interface Options {
  readonly since: Timestamp;
  readonly until?: Timestamp;
  readonly at?: Timestamp;
  readonly top: number;
}

/** Default number of customers that are printed. */
const topDefault = 10;

/** Adds the command. */
export function addPlan(command: Command, { context, print }: CliTools): void {
  const past = (text: string): Timestamp => pastArgument(text);
  command
    .argument("<file>", "the configuration, as uas.yaml")
    .addOption(
      new Option("--since <time>", "start of the calls, such as 30d (ago)")
        .argParser(past)
        .default(past("30d"), "30d"),
    )
    .option("--until <time>", "end of the calls (default: now)", past)
    .option("--at <time>", "moment whose dated prices count (default: the last ones)", (text) =>
      whenArgument(text),
    )
    .option("--top <count>", "customers to print", countArgument, topDefault)
    .action(async (file: string, options: Options) => {
      print(
        await withBackend(context, ({ transport }) =>
          plan(context, transport, { ...options, file }),
        ),
      );
    });
}

async function plan(
  context: CliContext,
  transport: Transport,
  { file, since, until, at, top }: Options & { readonly file: string },
): Promise<Output> {
  const client = createClient(ConfigService, transport);
  const { document, source } = await readMerged(context, file);
  const { problems } = await client.checkConfig({ document });
  for (const problem of problems) context.err(`${source}:${problem}\n`);
  if (problems.length > 0) return { json: { problems }, text: "", exitCode: 1 };
  const answer = await client
    .planConfig({
      document,
      fromTime: since,
      ...(until && { toTime: until }),
      ...(at && { priceTime: at }),
    })
    .catch(explain);
  const total = sumsJson(answer.total);
  const models = answer.models.map(groupJson);
  const accounts = answer.accounts.map(groupJson);
  const removedCalls = Number(answer.removedCalls);
  const period = { since: timeText(answer.fromTime), until: timeText(answer.toTime) };
  const removed =
    removedCalls === 0
      ? []
      : ["", `${removedCalls} calls are of models that ${file} does not have`];
  const text = [
    `${total.calls} calls from ${period.since} to ${period.until}, in USD`,
    "",
    groupTable("MODEL", [...models, { key: "", name: "all", ...total }]),
    "",
    groupTable("CUSTOMER", accounts.slice(0, top)),
    ...removed,
  ].join("\n");
  return { json: { ...period, total, models, accounts, removedCalls }, text };
}

/** A gateway of an older version has no plans. */
function explain(error: unknown): never {
  const { code } = ConnectError.from(error);
  if (code !== Code.Unimplemented) throw error;
  throw new Error("the running gateway is of an older version without plans: restart it first");
}

/** Sums in decimal USD. Margins count calls whose vendor cost is known before and after. */
function sumsJson(sums: PlanSums | undefined) {
  const nanos = (amount: { readonly amountNanos: bigint } | undefined): bigint =>
    amount?.amountNanos ?? 0n;
  const usd = (amount: bigint): string => formatUsd(amount);
  const [before, after] = [nanos(sums?.revenueBefore), nanos(sums?.revenueAfter)];
  const [costBefore, costAfter] = [nanos(sums?.vendorCostBefore), nanos(sums?.vendorCostAfter)];
  return {
    calls: Number(sums?.calls ?? 0),
    revenueBefore: usd(before),
    revenueAfter: usd(after),
    revenueChange: usd(after - before),
    costedCalls: Number(sums?.costedCalls ?? 0),
    vendorCostBefore: usd(costBefore),
    vendorCostAfter: usd(costAfter),
    marginBefore: usd(nanos(sums?.costedRevenueBefore) - costBefore),
    marginAfter: usd(nanos(sums?.costedRevenueAfter) - costAfter),
  };
}

function groupJson({ key, name, sums }: PlanGroup) {
  return { key, name, ...sumsJson(sums) };
}

function groupTable(head: string, groups: readonly ReturnType<typeof groupJson>[]): string {
  const rows = groups.map((each) => {
    const isCosted = each.costedCalls > 0;
    return [
      each.name || each.key,
      String(each.calls),
      each.revenueBefore,
      each.revenueAfter,
      each.revenueChange,
      isCosted ? each.marginBefore : "-",
      isCosted ? each.marginAfter : "-",
    ];
  });
  const titles = ["CALLS", "REVENUE", "THEN", "CHANGE", "MARGIN", "THEN"];
  return table([head, ...titles], rows);
}
