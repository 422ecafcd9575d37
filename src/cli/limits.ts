/** `uas key limit` and `uas account limit`: what may be spent per day, week or month. */
import { create } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError } from "commander";
import {
  type Budget,
  type BudgetPeriod,
  BudgetPeriodSchema,
  BudgetSchema,
} from "../../gen/uas/type/v1/budget_pb.ts";
import { CliError } from "./failure.ts";
import { enumWord, timeText, usdArgument, usdText } from "./values.ts";

/** The options of {@link addLimitOptions}. Omitted members stay as they are. */
export interface LimitOptions {
  /** An empty list: no budget. */
  readonly budget?: readonly Budget[];
  readonly zone?: string;
}

/** Adds the options that set limits. */
export function addLimitOptions(command: Command): Command {
  return command
    .option(
      "--budget <usd/period>",
      "what calls may cost per day, week or month, such as 10.00/month; repeat it for several, or none",
      budgetArgument,
    )
    .option("--zone <name>", "the time zone in which budgets reset (default: UTC)");
}

/** The members of a key or an account that the options change, and their paths. @throws CliError */
export function limitMembers({ budget, zone }: LimitOptions): {
  readonly members: { readonly budgets?: Budget[] };
  readonly paths: readonly string[];
} {
  if (budget === undefined) {
    if (zone !== undefined) throw new CliError("--zone is the time zone of a --budget: give both");
    return { members: {}, paths: [] };
  }
  const budgets = budget.map((each) => ({ ...each, timeZone: zone ?? "" }));
  return { members: { budgets }, paths: ["budgets"] };
}

/** As {@link limitMembers}, where something must change. @param command as in its help @throws CliError */
export function changedLimits(
  options: LimitOptions,
  command: string,
): ReturnType<typeof limitMembers> {
  const changed = limitMembers(options);
  if (changed.paths.length > 0) return changed;
  throw new CliError(`nothing to change: see npx uas ${command} --help`);
}

const periods = ["day", "week", "month"];

/** Parses `10.00/month`, in addition to those before, or `none`. */
function budgetArgument(text: string, before: readonly Budget[] = []): readonly Budget[] {
  if (text === "none") return [];
  const [amount = "", word = "", ...rest] = text.split("/");
  const period = periods.indexOf(word) + 1;
  if (period === 0 || rest.length > 0) {
    throw new InvalidArgumentError("Write an amount and a period such as 10.00/month, or none.");
  }
  return [
    ...before,
    create(BudgetSchema, { amount: usdArgument(amount), period: period as BudgetPeriod }),
  ];
}

/** The limits of a key or an account, in the words of the command line. */
export function limitTerms(owner: { readonly budgets: readonly Budget[] } | undefined) {
  return {
    budgets: (owner?.budgets ?? []).map(({ amount, period, timeZone, spent, resetTime }) => ({
      amount: usdText(amount),
      period: enumWord(BudgetPeriodSchema, period),
      zone: timeZone || "UTC",
      spent: usdText(spent),
      resetsAt: timeText(resetTime),
    })),
  };
}
