/**
 * A key and its account's money in the form that clients of OpenRouter read: numbers in USD. They
 * are written with all their digits, of which a JavaScript number has too few.
 */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { GetCreditsResponse } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import type { GetCurrentKeyResponse } from "../../gen/uas/key/v1/key_service_pb.ts";
import { type Budget, BudgetPeriod } from "../../gen/uas/type/v1/budget_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { formatUsd } from "../core/money.ts";

/** The body of `GET /v1/key`. */
export function keyBody({ key }: GetCurrentKeyResponse): Buffer {
  if (key === undefined) throw new Error("the answer has no key");
  const { name, masked, spendLimit, spent, expireTime } = key;
  const usage = nanosOf(spent);
  const budgets = key.budgets.map(budgetOf);
  const [tightest] = budgets.toSorted((a, b) => (a.remaining < b.remaining ? -1 : 1));
  const own = spendLimit && { limit: nanosOf(spendLimit), usage, reset: null };
  const { limit, remaining, reset } = own
    ? { ...own, remaining: leftOf(own.limit, usage) }
    : (tightest ?? { limit: null, remaining: null, reset: null });
  return jsonOf({
    label: name || masked,
    usage,
    // The limit for the whole life of the key, which has no reset; without one, the budget with the
    // least left.
    limit,
    limit_remaining: remaining,
    limit_reset: reset,
    budgets,
    expires_at: expireTime === undefined ? null : timestampDate(expireTime).toISOString(),
    // No model is kept from accounts that have not paid, and no key manages others.
    is_free_tier: false,
    is_provisioning_key: false,
    // That form's notation for no limit.
    rate_limit: { requests: -1, interval: "10s" },
  });
}

/** The body of `GET /v1/credits`. */
export function creditsBody({ totalCredits, totalUsage }: GetCreditsResponse): Buffer {
  return jsonOf({ total_credits: nanosOf(totalCredits), total_usage: nanosOf(totalUsage) });
}

/** A budget in the words of that form. */
function budgetOf({ period, amount, spent, resetTime, timeZone }: Budget) {
  const limit = nanosOf(amount);
  const usage = nanosOf(spent);
  return {
    reset: resetWords[period],
    limit,
    usage,
    remaining: leftOf(limit, usage),
    resets_at: resetTime && timestampDate(resetTime).toISOString(),
    time_zone: timeZone,
  };
}

const resetWords: Readonly<Record<BudgetPeriod, string | null>> = {
  [BudgetPeriod.UNSPECIFIED]: null,
  [BudgetPeriod.DAY]: "daily",
  [BudgetPeriod.WEEK]: "weekly",
  [BudgetPeriod.MONTH]: "monthly",
};

function leftOf(limit: bigint, usage: bigint): bigint {
  return limit > usage ? limit - usage : 0n;
}

function nanosOf(amount: Money | undefined): bigint {
  return amount?.amountNanos ?? 0n;
}

/** A `data` object as JSON. @param data nano-USD as bigint, written in USD */
function jsonOf(data: Readonly<Record<string, unknown>>): Buffer {
  const json = JSON.stringify({ data }, (_, value: unknown) =>
    typeof value === "bigint" ? rawJson(formatUsd(value)) : value,
  );
  return Buffer.from(json);
}

/** The types lack the function. */
function rawJson(text: string): unknown {
  const { rawJSON } = JSON as unknown as { rawJSON: (json: string) => unknown };
  return rawJSON(text);
}
