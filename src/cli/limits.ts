/**
 * `uas key limit` and `uas account limit`: what may be spent per day, week or month, and how fast.
 */
import { create } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError } from "commander";
import {
  type Budget,
  type BudgetPeriod,
  BudgetPeriodSchema,
  BudgetSchema,
} from "../../gen/uas/type/v1/budget_pb.ts";
import { type RateLimits, RateLimitsSchema } from "../../gen/uas/type/v1/rate_limits_pb.ts";
import { unlimitedRate } from "../core/rate-limits.ts";
import { CliError } from "./failure.ts";
import { countArgument, enumWord, orWord, timeText, usdArgument, usdText } from "./values.ts";

/** The options of {@link addLimitOptions}. Omitted members stay as they are. */
export interface LimitOptions {
  /** An empty list: no budget. */
  readonly budget?: readonly Budget[];
  readonly zone?: string;
  /** `false`: no limit. */
  readonly rpm?: number | false;
  readonly tpm?: number | false;
  readonly concurrency?: number | false;
}

/** Adds the options that set limits. */
export function addLimitOptions(command: Command): Command {
  return command
    .option(
      "--budget <usd/period>",
      "maximum cost of calls per day, week or month, such as 10.00/month; repeat it for several, or none",
      budgetArgument,
    )
    .option("--rpm <count>", `requests per minute, ${rateWords}`, rateArgument)
    .option("--tpm <count>", `tokens per minute, ${rateWords}`, rateArgument)
    .option("--concurrency <count>", `calls at once, ${rateWords}`, rateArgument)
    .option("--zone <name>", "the time zone in which budgets reset (default: UTC)");
}

/** The words that a rate limit may be instead of a number. */
const rateWords = "unlimited, or none (the defaults of the configuration)";

/** A number, `unlimited`, or `none`, which is false. */
const rateArgument = orWord("none", (text) =>
  text === "unlimited" ? unlimitedRate : countArgument(text),
);

/** The members of a key or an account that options change, and their paths. */
interface ChangedMembers {
  readonly members: { readonly budgets?: Budget[]; readonly rateLimits?: RateLimits };
  readonly paths: readonly string[];
}

/**
 * Reads the options. @param present rate limits that remain for omitted options. Default: none
 * @throws CliError
 */
export function limitMembers(options: LimitOptions, present?: RateLimits): ChangedMembers {
  const { budget, zone } = options;
  if (budget === undefined && zone !== undefined) {
    throw new CliError("--zone is the time zone of a --budget: give both");
  }
  const budgets = budget?.map((each) => ({ ...each, timeZone: zone ?? "" }));
  const rateLimits = hasRates(options) ? mergedRates(options, present) : undefined;
  return {
    members: { ...(budgets && { budgets }), ...(rateLimits && { rateLimits }) },
    paths: [...(budgets ? ["budgets"] : []), ...(hasRates(options) ? ["rate_limits"] : [])],
  };
}

const rates = ["rpm", "tpm", "concurrency"] as const;

/** Whether the options change rate limits. */
function hasRates(options: LimitOptions): boolean {
  return rates.some((name) => options[name] !== undefined);
}

/** Undefined if none is left. */
function mergedRates(options: LimitOptions, present?: RateLimits): RateLimits | undefined {
  const merged = create(RateLimitsSchema);
  for (const name of rates) {
    const limit = options[name] ?? present?.[name];
    if (limit !== undefined && limit !== false) merged[name] = limit;
  }
  return rates.some((name) => merged[name] !== undefined) ? merged : undefined;
}

/**
 * Like {@link limitMembers}, if something must change.
 *
 * @param command as in its help
 * @param readPresent reads the present rate limits, if some of them are to remain
 * @throws CliError
 */
export async function changedLimits(
  options: LimitOptions,
  command: string,
  readPresent: () => Promise<RateLimits | undefined>,
): Promise<ChangedMembers> {
  const present = hasRates(options) ? await readPresent() : undefined;
  const changed = limitMembers(options, present);
  if (changed.paths.length > 0) return changed;
  throw new CliError(`nothing to change: see uas ${command} --help`);
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

function rateTerm(limit: number | null): number | "unlimited" | null {
  return limit === unlimitedRate ? "unlimited" : limit;
}

/** The limits of a key or an account, in the words of the command line. */
export function limitTerms(
  owner:
    | { readonly budgets: readonly Budget[]; readonly rateLimits?: RateLimits | undefined }
    | undefined,
) {
  const { rpm = null, tpm = null, concurrency = null } = owner?.rateLimits ?? {};
  return {
    rpm: rateTerm(rpm),
    tpm: rateTerm(tpm),
    concurrency: rateTerm(concurrency),
    budgets: (owner?.budgets ?? []).map(({ amount, period, timeZone, spent, resetTime }) => ({
      amount: usdText(amount),
      period: enumWord(BudgetPeriodSchema, period),
      zone: timeZone || "UTC",
      spent: usdText(spent),
      resetsAt: timeText(resetTime),
    })),
  };
}
