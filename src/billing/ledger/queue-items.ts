/** Operations that wait in a lane, and who waits for them. */
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { BatchExtend, BatchHold, BatchSettle, Checkpoint } from "./batch.ts";
import type { CallRow } from "../calls/call-row.ts";
import type {
  ExtendOperation,
  ExtendVerdict,
  HoldOperation,
  HoldVerdict,
  SettleOperation,
} from "./ledger.ts";

/** A hold that somebody waits for. */
export interface HoldItem extends BatchHold {
  readonly accountId: string;
  /** When its caller is answered with 503, on the clock of `performance.now()`. */
  readonly deadlineMs: number;
  readonly resolve: (verdict: HoldVerdict) => void;
  readonly reject: (error: GatewayError) => void;
  /** waiting: may be dropped · sent: its outcome is open · abandoned: nobody waits any more · answered. */
  state: "waiting" | "sent" | "abandoned" | "answered";
}

/** An extension that somebody waits for; several, where later ones have joined it. */
export interface ExtendItem extends BatchExtend {
  amount: string;
  checkpoint: Checkpoint | undefined;
  readonly waiters: {
    readonly resolve: (verdict: ExtendVerdict) => void;
    readonly reject: (error: GatewayError) => void;
  }[];
}

/** A settlement that waits to become durable. */
export interface SettleItem extends BatchSettle {
  readonly resolve: () => void;
  readonly reject: (error: GatewayError) => void;
}

/** A settlement that its caller waits for. */
export interface PendingSettle extends SettleItem {
  readonly accountId: string;
  readonly record: CallRow;
  /** When it was asked for, on the clock of `performance.now()`. */
  readonly sinceMs: number;
}

/** A hold as it waits. */
export function holdItem(
  { id, accountId, amountNanos, keyId, keyLimitNanos, requestId = "" }: HoldOperation,
  caller: Pick<HoldItem, "deadlineMs" | "resolve" | "reject">,
): HoldItem {
  const amount = amountNanos.toString();
  const keyLimit = keyLimitNanos?.toString();
  const { deadlineMs, resolve, reject } = caller;
  const asked = { id, accountId, amount, keyId, keyLimit, requestId };
  return { ...asked, deadlineMs, resolve, reject, state: "waiting" };
}

/** An extension as it waits, nobody yet for it. */
export function extendItem(operation: ExtendOperation): ExtendItem {
  const { id, accountId, amountNanos, checkpointNanos, record } = operation;
  const isSame = record === undefined || (record.id === id && record.account_id === accountId);
  const row = isSame ? record : { ...record, id, account_id: accountId };
  const checkpoint =
    checkpointNanos === undefined ? undefined : { cost: checkpointNanos.toString(), record: row };
  return { id, amount: amountNanos.toString(), checkpoint, waiters: [] };
}

/** A settlement as it waits. */
export function settleItem(
  { id, accountId, costNanos, record }: SettleOperation,
  caller: Pick<PendingSettle, "sinceMs" | "resolve" | "reject">,
): PendingSettle {
  const cost = costNanos.toString();
  const isSame = record.id === id && record.cost === cost && record.account_id === accountId;
  const row = isSame ? record : { ...record, id, cost, account_id: accountId };
  const { sinceMs, resolve, reject } = caller;
  return { id, accountId, cost, record: row, sinceMs, resolve, reject };
}

/** Makes one of two: the larger amount, the later checkpoint, all who wait. Returns the first. */
export function merge(first: ExtendItem, later: ExtendItem): ExtendItem {
  if (BigInt(later.amount) > BigInt(first.amount)) first.amount = later.amount;
  const { checkpoint } = later;
  if (checkpoint !== undefined) {
    first.checkpoint = { ...checkpoint, record: checkpoint.record ?? first.checkpoint?.record };
  }
  first.waiters.push(...later.waiters);
  return first;
}

/** A settlement of nothing, without a record and with nobody waiting. */
export function release(id: string): SettleItem {
  return { id, cost: "0", record: undefined, resolve() {}, reject() {} };
}

/** What the caller of an operation is told that the database refuses. */
export function refusal(cause: unknown): GatewayError {
  return new GatewayError(ErrorCode.INTERNAL_ERROR, "the gateway could not book this call", {
    internal: "the ledger refused the operation as invalid",
    cause,
  });
}
