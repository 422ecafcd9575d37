/** Encodes the parameters of the SQL function `ledger_apply`, and decodes its verdicts. */
import { binaryArray, type EncodeArray } from "../../db/array.ts";
import { callColumns, callColumnsCount, checkpointsJson } from "../calls/call-columns.ts";
import type { CallRow } from "../calls/call-row.ts";
import type { Failpoint } from "./failpoints.ts";
import type { BudgetLeft, ExtendVerdict, HoldVerdict } from "./ledger.ts";
import type { Row, Statement, StatementValue } from "./ledger-connection.ts";

/** Number of parameters of `ledger_apply` after the account. */
const applyParameters = 15 + callColumnsCount;

/**
 * SQL of its call, for `from`. @param account SQL of the account id @param first the number of the
 * next parameter
 */
export function applyCall(account: string, first: number): string {
  const others = Array.from({ length: applyParameters }, (_, index) => `$${first + index}`);
  return `ledger_apply(${[account, ...others].join(", ")})`;
}

/** The one statement that changes the money of calls. */
export const applyStatement: Statement = {
  name: "ledger_apply",
  text: `select * from ${applyCall("$1", 2)}`,
};

/** A hold as the statement takes it. */
export interface BatchHold {
  readonly id: string;
  /** Nano-USD in decimal digits. */
  readonly amount: string;
  /** Empty if there is none. */
  readonly keyId: string;
  /** Nano-USD in decimal digits; undefined for no limit. */
  readonly keyLimit: string | undefined;
  /** Empty if unknown. */
  readonly requestId: string;
}

/** An extension as the statement takes it. A hold comes once in a batch. */
export interface BatchExtend {
  readonly id: string;
  /** Nano-USD in decimal digits. */
  readonly amount: string;
  readonly checkpoint: Checkpoint | undefined;
}

/** The charge of a call if its process dies before the settlement. */
export interface Checkpoint {
  /** Nano-USD in decimal digits. */
  readonly cost: string;
  readonly record: CallRow | undefined;
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
 * - `already`: settled before; nothing changed.
 * - `unknown`: the account never had this hold. Nothing was charged.
 */
export type SettleVerdict = "settled" | "already" | "unknown";

const admitted: HoldVerdict = { admitted: true };
const budgeted: HoldVerdict = { admitted: true, isBudgeted: true };
const settleWords: Readonly<Record<string, SettleVerdict>> = {
  s: "settled",
  a: "already",
  u: "unknown",
};

/** Operations of one account. */
export interface Batch {
  readonly settles: readonly BatchSettle[];
  readonly extends: readonly BatchExtend[];
  readonly holds: readonly BatchHold[];
}

/** The process that sends a batch, and the lifetime of its holds. */
export interface Sender {
  /** The holds are recovered when this process dies; null means they only expire. */
  readonly nodeId: string | null;
  /** Set until the database has answered once: the first batch registers the process. */
  readonly nodeName: string | null;
  readonly holdTtlMs: number;
}

/** Options for encoding a batch with {@link applyValues}. */
export interface ApplyOptions {
  /**
   * Whether these operations were never sent before. The statement then skips the search for
   * earlier ones, and fails with a duplicate key if there is one. Default false.
   */
  readonly isFresh?: boolean;
  /** Default {@link binaryArray}. */
  readonly encode?: EncodeArray;
}

/** The parameters of {@link applyStatement}. */
export function applyValues(
  accountId: string,
  { settles, extends: grown, holds }: Batch,
  { nodeId, nodeName, holdTtlMs }: Sender,
  { isFresh = false, encode = binaryArray }: ApplyOptions = {},
): StatementValue[] {
  return [
    accountId,
    nodeId,
    nodeName,
    ...settleValues(settles, encode),
    ...extendValues(grown, encode),
    ...holdValues(holds, encode),
    holdTtlMs,
    requestIdsOf(holds, encode),
    isFresh ? "t" : "f",
  ];
}

function settleValues(
  settles: readonly BatchSettle[],
  encode: EncodeArray,
): readonly (string | Buffer | null)[] {
  if (settles.length === 0) return noSettles;
  const hasVendorCosts = settles.some(({ record }) => record?.vendor_cost);
  return [
    encode("uuid", settles, (settle) => settle.id),
    encode("bigint", settles, (settle) => settle.cost),
    hasVendorCosts
      ? encode("bigint", settles, ({ record }) => record?.vendor_cost || undefined)
      : null,
    ...callColumns(settles, encode),
  ];
}

const noSettles: readonly null[] = Array.from({ length: 3 + callColumnsCount }, () => null);

function extendValues(
  grown: readonly BatchExtend[],
  encode: EncodeArray,
): (string | Buffer | null)[] {
  if (grown.length === 0) return [null, null, null];
  return [
    encode("uuid", grown, (extend) => extend.id),
    encode("bigint", grown, (extend) => extend.amount),
    checkpointsJson(grown),
  ];
}

function holdValues(holds: readonly BatchHold[], encode: EncodeArray): (string | Buffer | null)[] {
  if (holds.length === 0) return [null, null, null, null];
  const isLimited = holds.some((hold) => hold.keyLimit !== undefined);
  return [
    encode("uuid", holds, (hold) => hold.id),
    encode("bigint", holds, (hold) => hold.amount),
    keyIdsOf(holds, isLimited, encode),
    isLimited ? encode("bigint", holds, (hold) => hold.keyLimit) : null,
  ];
}

/** The key ids of the holds; a single one if all are equal. */
function keyIdsOf(
  holds: readonly BatchHold[],
  isLimited: boolean,
  encode: EncodeArray,
): string | Buffer | null {
  const keyId = holds[0]?.keyId ?? "";
  if (isLimited || holds.some((hold) => hold.keyId !== keyId)) {
    return encode("uuid", holds, (hold) => hold.keyId || undefined);
  }
  return keyId === "" ? null : `{${keyId}}`;
}

function requestIdsOf(holds: readonly BatchHold[], encode: EncodeArray): string | Buffer | null {
  if (!holds.some(({ requestId }) => requestId !== "")) return null;
  return encode("text", holds, ({ requestId }) => requestId || undefined);
}

/** The verdicts of the holds in their order; undefined if all were admitted. */
export function holdVerdicts(row: Row): readonly HoldVerdict[] | undefined {
  const text = row?.["hold_verdicts"];
  return typeof text === "string" ? text.split(",").map(holdVerdict) : undefined;
}

/** The verdicts of the settlements in their order; undefined if all were settled now. */
export function settleVerdicts(row: Row): readonly SettleVerdict[] | undefined {
  const text = row?.["settle_verdicts"];
  return typeof text === "string"
    ? text.split(",").map((word) => settleWords[word] ?? "unknown")
    : undefined;
}

/** The verdicts of the extensions in their order; undefined if all were granted in full. */
export function extendVerdicts(row: Row): readonly ExtendVerdict[] | undefined {
  const text = row?.["extend_verdicts"];
  if (typeof text !== "string") return undefined;
  return text
    .split(",")
    .map((word) => (word === "c" ? { heldNanos: 0n, closed: true } : { heldNanos: BigInt(word) }));
}

/** The account's balance in nano-USD, if the batch took it below its threshold. */
export function lowBalance(row: Row): bigint | undefined {
  const low = row?.["low_balance"];
  return typeof low === "string" ? BigInt(low) : undefined;
}

/**
 * Returns the part of the batch's settlements that the account could not pay, in nano-USD, if more
 * than 0.
 */
export function platformLoss(row: Row): bigint | undefined {
  const loss = row?.["platform_loss"];
  return typeof loss === "string" ? BigInt(loss) : undefined;
}

function holdVerdict(word: string): HoldVerdict {
  if (word === "a" || word === "d") return admitted;
  if (word === "b") return budgeted;
  if (word === "c") return { admitted: false, availableNanos: 0n, closed: true };
  if (word.includes("|")) return budgetVerdict(word.split("|"));
  const [available = "0", keyRemaining] = word.split("/");
  const refused = { admitted: false, availableNanos: BigInt(available) } as const;
  return keyRemaining === undefined
    ? refused
    : { ...refused, keyRemainingNanos: BigInt(keyRemaining) };
}

/** See ledger_budget_short. */
function budgetVerdict(words: readonly string[]): HoldVerdict {
  const [available = "0", owner, period, amount = "0", remaining = "0", endMs, timeZone = ""] =
    words;
  const budget: BudgetLeft = {
    owner: owner === "a" ? "account" : "key",
    period: Number(period),
    amountNanos: BigInt(amount),
    remainingNanos: BigInt(remaining),
    resetTime: new Date(Number(endMs)),
    timeZone,
  };
  return { admitted: false, availableNanos: BigInt(available), budget };
}

/**
 * The operation waits · its bytes were written · the database has answered, but no caller was
 * notified yet.
 */
export type Stage = "queued" | "sent" | "answered";

/**
 * Calls the failpoint for each kind of operation in a batch. A release is a settlement with cost 0.
 */
export function hitFailpoints(
  at: Failpoint,
  { settles, extends: grown, holds }: Batch,
  stage: Stage,
): void {
  if (settles.some(({ cost }) => cost !== "0")) at(`settle.${stage}`);
  if (settles.some(({ cost }) => cost === "0")) at(`release.${stage}`);
  if (grown.length > 0) at(`extend.${stage}`);
  if (holds.length > 0) at(`hold.${stage}`);
}
