/** Operations in an account's queue, with the callers that wait for them. */
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

/** A hold with its caller. */
export interface HoldItem extends BatchHold {
  readonly accountId: string;
  /** When its caller gets a 503, on the clock of `performance.now()`. */
  readonly deadlineMs: number;
  readonly resolve: (verdict: HoldVerdict) => void;
  readonly reject: (error: GatewayError) => void;
  /** waiting: may be dropped · sent: its outcome is open · abandoned: its caller got a 503 · answered. */
  state: "waiting" | "sent" | "abandoned" | "answered";
}

/** An extension with its callers: several where later extensions have merged into it. */
export interface ExtendItem extends BatchExtend {
  amount: string;
  checkpoint: Checkpoint | undefined;
  readonly waiters: {
    readonly resolve: (verdict: ExtendVerdict) => void;
    readonly reject: (error: GatewayError) => void;
  }[];
}

/** A settlement that is not durable yet. */
export interface SettleItem extends BatchSettle {
  readonly resolve: () => void;
  readonly reject: (error: GatewayError) => void;
}

/** A settlement with its caller, for the journal. */
export interface PendingSettle extends SettleItem {
  readonly accountId: string;
  readonly record: CallRow;
  /** When it was requested, on the clock of `performance.now()`. */
  readonly sinceMs: number;
}

/** Creates the queue item of a hold. */
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

/** Creates the queue item of an extension, without a caller yet. */
export function extendItem(operation: ExtendOperation): ExtendItem {
  const { id, accountId, amountNanos, checkpointNanos, record } = operation;
  const isSame = record === undefined || (record.id === id && record.account_id === accountId);
  const row = isSame ? record : { ...record, id, account_id: accountId };
  const checkpoint =
    checkpointNanos === undefined ? undefined : { cost: checkpointNanos.toString(), record: row };
  return { id, amount: amountNanos.toString(), checkpoint, waiters: [] };
}

/** Creates the queue item of a settlement. */
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

/** Merges a later extension into a pending one: the larger amount, the later checkpoint, all callers. Returns the first. */
export function merge(first: ExtendItem, later: ExtendItem): ExtendItem {
  if (BigInt(later.amount) > BigInt(first.amount)) first.amount = later.amount;
  const { checkpoint } = later;
  if (checkpoint !== undefined) {
    first.checkpoint = { ...checkpoint, record: checkpoint.record ?? first.checkpoint?.record };
  }
  first.waiters.push(...later.waiters);
  return first;
}

/** Creates a release: a settlement with cost 0, without a record or a caller. */
export function release(id: string): SettleItem {
  return { id, cost: "0", record: undefined, resolve() {}, reject() {} };
}

/** 500 for the caller of an operation that the database refuses as invalid. */
export function refusal(cause: unknown): GatewayError {
  return new GatewayError(ErrorCode.INTERNAL_ERROR, "the gateway could not book this call", {
    internal: "the ledger refused the operation as invalid",
    cause,
  });
}
