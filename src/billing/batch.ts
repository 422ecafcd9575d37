/** The words of the SQL function `ledger_apply`: its parameters and its verdicts. */
import { callsJson } from "./call-json.ts";
import type { CallRow } from "./call-row.ts";
import type { HoldVerdict } from "./ledger.ts";
import type { Row, Statement } from "./link.ts";

/** The one statement that moves money of calls. */
export const applyStatement: Statement = {
  name: "ledger_apply",
  text: "select * from ledger_apply($1, $2, $3, $4, $5, $6, $7)",
};

/** A hold as the statement takes it. */
export interface BatchHold {
  readonly id: string;
  /** Nano-USD in decimal digits. */
  readonly amount: string;
}

/** A settlement as the statement takes it. */
export interface BatchSettle {
  readonly id: string;
  /** Nano-USD in decimal digits. */
  readonly cost: string;
  readonly record: CallRow | undefined;
}

/**
 * - `settled`: charged or released now.
 * - `already`: it had been before; nothing changed.
 * - `unknown`: there never was such a hold of this account. Nothing was charged.
 */
export type SettleVerdict = "settled" | "already" | "unknown";

const admitted: HoldVerdict = { admitted: true };
const settleWords: Readonly<Record<string, SettleVerdict>> = {
  s: "settled",
  a: "already",
  u: "unknown",
};

/** The parameters of {@link applyStatement}. Arrays are written by hand: the driver takes 3 times as long. */
export function applyValues(
  accountId: string,
  batch: { readonly holds: readonly BatchHold[]; readonly settles: readonly BatchSettle[] },
  ttlMs: number,
): (string | number | null)[] {
  const records: CallRow[] = [];
  for (const { record } of batch.settles) if (record) records.push(record);
  return [
    accountId,
    arrayText(batch.holds, (hold) => hold.id),
    arrayText(batch.holds, (hold) => hold.amount),
    arrayText(batch.settles, (settle) => settle.id),
    arrayText(batch.settles, (settle) => settle.cost),
    records.length > 0 ? callsJson(records) : null,
    ttlMs,
  ];
}

/** The verdicts of `count` holds in their order; `undefined`: all were admitted. */
export function holdVerdicts(row: Row): readonly HoldVerdict[] | undefined {
  const text = row?.["hold_verdicts"];
  return typeof text === "string" ? text.split(",").map(holdVerdict) : undefined;
}

/** The verdicts of the settlements in their order; `undefined`: all were settled now. */
export function settleVerdicts(row: Row): readonly SettleVerdict[] | undefined {
  const text = row?.["settle_verdicts"];
  return typeof text === "string"
    ? text.split(",").map((word) => settleWords[word] ?? "unknown")
    : undefined;
}

function holdVerdict(word: string): HoldVerdict {
  if (word === "a" || word === "d") return admitted;
  if (word === "c") return { admitted: false, availableNanos: 0n, closed: true };
  return { admitted: false, availableNanos: BigInt(word) };
}

function arrayText<T>(items: readonly T[], text: (item: T) => string): string {
  let array = "{";
  for (const item of items) array += array.length === 1 ? text(item) : `,${text(item)}`;
  return `${array}}`;
}
