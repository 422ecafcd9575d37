/** The text of an alert: as the data of a webhook, and as an e-mail. Pure. */
import { periodWords } from "../core/budgets.ts";
import { formatUsd } from "../core/money.ts";
import type { AlertFacts } from "./entity.ts";

/** An alert, with the names of its account and key. */
export interface AlertRow {
  readonly id: string;
  readonly account_id: string;
  /** 1: the balance is low; 2: a budget has reached a threshold. */
  readonly kind: number;
  readonly facts: AlertFacts;
  readonly create_time: Date;
  /** Empty if the account has no name, or was deleted. */
  readonly account_name: string;
  /**
   * The name of the budget's key, or its masked secret if it has no name; null for a budget of the
   * account.
   */
  readonly key_name: string | null;
}

/** An alert in words. */
interface AlertMessage {
  readonly type: "balance.low" | "budget.threshold";
  /** The `data` of the webhook. */
  readonly data: { readonly [name: string]: string | number | null };
  /** Of the e-mail: one line, without line breaks even if names contain them. */
  readonly subject: string;
  /** Of the e-mail: plain text. */
  readonly text: string;
}

/** Writes an alert. */
export function alertMessage(row: AlertRow): AlertMessage {
  return row.kind === 1 ? lowBalance(row) : budgetThreshold(row);
}

function lowBalance({ account_id, account_name: name, facts }: AlertRow): AlertMessage {
  const balance = usdOf(facts.balance);
  const threshold = usdOf(String(facts.threshold));
  return {
    type: "balance.low",
    data: { account_id, account_name: name, balance, threshold, currency: "USD" },
    subject: line(`Low balance: ${balance} USD left on ${name || account_id}`),
    text: [
      `The balance of the account ${name} (${account_id}) is ${balance} USD,`,
      `below its alert of ${threshold} USD.`,
      "",
      "Calls are refused when the balance does not cover them: top up the account in time.",
      "This alert is sent again when the balance has been above the threshold and falls below it once more.",
    ].join("\n"),
  };
}

function budgetThreshold({ account_id, account_name, key_name, facts }: AlertRow): AlertMessage {
  const { threshold, owner = account_id, timeZone = "UTC", startTime = "", endTime = "" } = facts;
  const amount = usdOf(facts.amount);
  const spent = usdOf(facts.spent);
  const period = periodWords[facts.period ?? 0] ?? "";
  const isAccount = owner === account_id;
  const reset = new Date(endTime).toISOString();
  const whose = isAccount
    ? `the account ${account_name} (${account_id})`
    : `the API key ${key_name ?? ""} (${owner}) of the account ${account_name} (${account_id})`;
  return {
    type: "budget.threshold",
    data: {
      account_id,
      account_name,
      owner: isAccount ? "account" : "key",
      key_id: isAccount ? null : owner,
      key_name: isAccount ? null : key_name,
      threshold_percent: Number(threshold),
      period,
      budget: amount,
      spent,
      currency: "USD",
      time_zone: timeZone,
      period_start: new Date(startTime).toISOString(),
      reset_time: reset,
    },
    subject: line(
      `${threshold} % of the budget of ${amount} USD per ${period} is spent: ${key_name ?? (account_name || account_id)}`,
    ),
    text: [
      `${spent} USD of the budget of ${amount} USD per ${period} of ${whose} are spent.`,
      "",
      `The budget resets at ${reset} (time zone of its periods: ${timeZone}). Until then, calls that could exceed it`,
      "are refused. This alert is sent once per period for each of 50, 80 and 95 %.",
    ].join("\n"),
  };
}

function usdOf(nanos: string | undefined): string {
  return formatUsd(BigInt(nanos ?? "0"));
}

/** Names come from users: a line break in a subject would begin another header. */
function line(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").slice(0, 200);
}
