/**
 * The error of a hold that the ledger refused: it names what is missing, of what, and what helps.
 */
import { periodWords } from "../core/budgets.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { formatUsd } from "../core/money.ts";
import type { BudgetLeft, HoldVerdict } from "./ledger/ledger.ts";

/** The requested hold. */
export interface RefusedHold {
  readonly verdict: Extract<HoldVerdict, { admitted: false }>;
  readonly neededNanos: bigint;
  /** The key's spend limit. Default: no limit. */
  readonly limitNanos?: bigint | undefined;
  /** A call, whose customer can ask for fewer tokens, or a task. */
  readonly subject: "call" | "task";
}

/** A spending limit, and its remaining amount. */
interface Spendable {
  readonly left: string;
  readonly remedy: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * 402 for a refused hold: the balance, the key's spend limit or a budget does not cover it
 * (R-MON-4, R-KEY-4).
 */
export function holdRefused(refused: RefusedHold): GatewayError {
  const { neededNanos, subject } = refused;
  const needed = formatUsd(neededNanos);
  const { left, remedy, metadata } = spendableOf(refused);
  const asks = subject === "call" ? `this call needs ${needed}` : `this task can cost ${needed}`;
  const less = subject === "call" ? "request fewer tokens (max_tokens)" : "ask for less";
  return new GatewayError(
    ErrorCode.INSUFFICIENT_BALANCE,
    `Insufficient balance: ${asks} USD, ${left}; ${remedy} or ${less}`,
    { metadata: { needed, ...metadata } },
  );
}

function spendableOf({ verdict, limitNanos }: RefusedHold): Spendable {
  const { availableNanos, keyRemainingNanos, budget } = verdict;
  if (budget !== undefined) return ofBudget(budget);
  if (keyRemainingNanos !== undefined && limitNanos !== undefined) {
    return ofLimit(limitNanos, keyRemainingNanos);
  }
  const available = formatUsd(availableNanos);
  const left = `${available} USD is available`;
  return { left, remedy: "top up the account", metadata: { available } };
}

function ofLimit(limitNanos: bigint, remainingNanos: bigint): Spendable {
  const spendLimit = formatUsd(limitNanos);
  const remaining = formatUsd(remainingNanos);
  return {
    left: `but of the API key's spend limit of ${spendLimit} USD only ${remaining} USD is left`,
    remedy: "raise the key's limit",
    metadata: { spend_limit: spendLimit, remaining },
  };
}

function ofBudget({ owner, period, amountNanos, remainingNanos, ...end }: BudgetLeft): Spendable {
  const budget = formatUsd(amountNanos);
  const remaining = formatUsd(remainingNanos);
  const word = periodWords[period] ?? "period";
  const whose = owner === "account" ? "account" : "API key";
  const reset = end.resetTime.toISOString().replace(".000Z", "Z");
  return {
    left: `but of the ${whose}'s budget of ${budget} USD per ${word} (${end.timeZone}) only ${remaining} USD is left until it resets at ${reset}`,
    remedy: "wait until then, raise the budget",
    metadata: { budget, budget_owner: owner, budget_period: word, remaining, reset_time: reset },
  };
}
