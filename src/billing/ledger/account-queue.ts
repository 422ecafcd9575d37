/**
 * The queue of one account: operations join its next batch while one batch is under way, and in a
 * short rest after a large one (group commit).
 */
import { ledgerBatchMax } from "../../core/limits.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { Placed } from "../../core/short-lived.ts";
import { bareRecord } from "../calls/call-record.ts";
import type { CallRow } from "../calls/call-row.ts";
import {
  applyStatement,
  applyValues,
  type Batch,
  type BatchExtend,
  type BatchHold,
  type BatchSettle,
  type Checkpoint,
  extendVerdicts,
  hitFailpoints,
  holdVerdicts,
  lowBalance,
  platformLoss,
  type Sender,
  type SettleVerdict,
  settleVerdicts,
} from "./batch.ts";
import type { Turn, Work, WorkSource } from "./dispatcher.ts";
import type { Failpoint } from "./failpoints.ts";
import type {
  ExtendOperation,
  ExtendVerdict,
  HoldOperation,
  HoldVerdict,
  SettleOperation,
} from "./ledger.ts";
import { isDuplicate, type Row } from "./ledger-connection.ts";

/** A hold with its caller. */
export interface HoldItem extends BatchHold {
  readonly accountId: string;
  /** When its caller gets a 503, on the clock of `performance.now()`. */
  readonly deadlineMs: number;
  readonly resolve: (verdict: HoldVerdict) => void;
  readonly reject: (error: GatewayError) => void;
  /**
   * waiting: may be dropped · sent: its outcome is open · abandoned: its caller got a 503 ·
   * answered.
   */
  state: "waiting" | "sent" | "abandoned" | "answered";
}

/** An extension with its callers: several if later extensions have merged into it. */
export interface ExtendItem extends BatchExtend, Placed {
  amount: string;
  checkpoint: Checkpoint | undefined;
  readonly waiters: {
    readonly resolve: (verdict: ExtendVerdict) => void;
    readonly reject: (error: GatewayError) => void;
  }[];
}

/** A settlement that is not durable yet. */
export interface SettleItem extends BatchSettle {
  /**
   * Whether {@link record} is a {@link bareRecord}, because the database refused the whole one.
   * Default false.
   */
  readonly isBare?: boolean;
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
  return { id, amount: amountNanos.toString(), checkpoint, waiters: [], place: -1 };
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

/**
 * Merges a later extension into a pending one: the larger amount, the later checkpoint, all
 * callers. Returns the first.
 */
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

/** Callbacks from an account's queue to the ledger. */
export interface AccountQueueEvents {
  /** The queue has a batch to send. */
  onWork(queue: AccountQueue): void;
  /** The database has answered a batch. */
  onAnswered(): void;
  /** Called when a hold was placed and its caller was notified. */
  onAdmitted(item: HoldItem): void;
  /** An extension is answered. */
  onExtended(item: ExtendItem): void;
  /** A settlement is durable. */
  onSettled(item: SettleItem, verdict: SettleVerdict): void;
  /**
   * The database refused a settlement or an extension's checkpoint as invalid: a fault of this
   * program.
   */
  onRefused(item: SettleItem | ExtendItem, error: unknown): void;
  /** A batch has cost more than the account could pay. */
  onLoss(accountId: string, lossNanos: bigint): void;
  /** The account has fallen below its threshold. */
  onLowBalance(accountId: string, balanceNanos: bigint): void;
  /** The queue is empty, and no batch is under way. */
  onEmpty(queue: AccountQueue): void;
}

interface Items extends Batch {
  readonly settles: readonly SettleItem[];
  readonly extends: readonly ExtendItem[];
  readonly holds: readonly HoldItem[];
}

/**
 * After a batch of this many operations or more, the account's next one waits for so many
 * milliseconds, and more operations join it. A batch costs PostgreSQL 310 µs of CPU, and each call
 * in it 8 µs more: calls that a batch has just answered are in the next one instead of the one
 * after. With 64 clients a call takes 26 µs of PostgreSQL's CPU instead of 32 and 8 % less of the
 * gateway's, and is as fast; 2 ms would slow it down. Accounts with fewer calls at once do not
 * wait.
 */
const rest = { operations: 24, ms: 1 };

const nothing: Items = { settles: [], extends: [], holds: [] };

/** Batches the operations of one account. */
export class AccountQueue implements WorkSource {
  turn: Turn = "idle";
  readonly accountId: string;
  readonly #events: AccountQueueEvents;
  readonly #sender: Sender;
  readonly #failpoint: Failpoint | undefined;
  #settles: SettleItem[] = [];
  /** By hold: a later extension merges into the pending one. */
  #extends = new Map<string, ExtendItem>();
  #holds: HoldItem[] = [];
  /**
   * Halves of a batch that the database refused as a whole: they isolate the operation at fault.
   */
  #refusedHalves: Items[] = [];

  /** @param sender is read with each batch */
  constructor(accountId: string, sender: Sender, events: AccountQueueEvents, at?: Failpoint) {
    this.accountId = accountId;
    this.#sender = sender;
    this.#events = events;
    this.#failpoint = at;
  }

  /** Adds a hold to the next batch. */
  addHold(item: HoldItem): void {
    this.#holds.push(item);
    this.#events.onWork(this);
  }

  /**
   * Adds an extension to the next batch. Returns the item that is sent: the pending one of the same
   * hold, if any.
   */
  addExtend(item: ExtendItem): ExtendItem {
    const waiting = this.#extends.get(item.id);
    if (waiting) return merge(waiting, item);
    this.#extends.set(item.id, item);
    this.#events.onWork(this);
    return item;
  }

  /** Adds a settlement to the next batch. */
  addSettle(item: SettleItem): void {
    this.#settles.push(item);
    this.#events.onWork(this);
  }

  /** Drops abandoned holds that were never sent. */
  dropAbandoned(): void {
    this.#holds = this.#holds.filter((item) => item.state === "waiting");
  }

  /** The next batch: what queued while the last one was under way. */
  take(): Work | undefined {
    const part = this.#refusedHalves.shift();
    const batch = part ?? this.#nextBatch();
    if (!this.#isEmpty()) this.#events.onWork(this);
    if (sizeOf(batch) > 0) return this.#work(batch, part === undefined);
    this.#events.onEmpty(this);
    return undefined;
  }

  #nextBatch(): Items {
    const settles = upTo(this.#settles, ledgerBatchMax);
    if (settles === this.#settles) this.#settles = [];
    // In the order of the holds, as the database finds them: it then has nothing to join.
    settles.sort((a, b) => (a.id < b.id ? -1 : 1));
    let room = ledgerBatchMax - settles.length;
    const grown = this.#extends.size > 0 ? this.#takeExtends(room) : nothing.extends;
    room -= grown.length;
    const holds = upTo(this.#holds, room);
    if (holds === this.#holds) this.#holds = [];
    for (const item of holds) if (item.state === "waiting") item.state = "sent";
    return { settles, extends: grown, holds };
  }

  #takeExtends(max: number): ExtendItem[] {
    const taken: ExtendItem[] = [];
    for (const item of this.#extends.values()) {
      if (taken.length >= max) break;
      taken.push(item);
      this.#extends.delete(item.id);
    }
    return taken;
  }

  #work(batch: Items, isFresh: boolean): Work {
    const at = this.#failpoint;
    return {
      statement: applyStatement,
      values: applyValues(this.accountId, batch, this.#sender, { isFresh }),
      ...(rests(batch) && { restMs: rest.ms, rested: () => this.#dropIfEmpty() }),
      ...(at && { sent: () => hitFailpoints(at, batch, "sent") }),
      done: (row) => this.#done(batch, row),
      refused: (error) => {
        if (isFresh && isDuplicate(error)) this.#again(batch);
        else this.#refused(batch, error);
      },
    };
  }

  #done(batch: Items, row: Row): void {
    if (this.#failpoint) hitFailpoints(this.#failpoint, batch, "answered");
    this.#events.onAnswered();
    const holds = holdVerdicts(row);
    batch.holds.forEach((item, index) => this.#answer(item, holds?.[index] ?? { admitted: true }));
    if (batch.extends.length > 0) this.#extended(batch.extends, row);
    const settles = settleVerdicts(row);
    batch.settles.forEach((item, index) => {
      this.#events.onSettled(item, settles?.[index] ?? "settled");
      item.resolve();
    });
    const low = lowBalance(row);
    if (low !== undefined) this.#events.onLowBalance(this.accountId, low);
    const loss = platformLoss(row);
    if (loss !== undefined) this.#events.onLoss(this.accountId, loss);
    if (!rests(batch)) this.#dropIfEmpty();
  }

  #dropIfEmpty(): void {
    if (this.#isEmpty()) this.#events.onEmpty(this);
  }

  #answer(item: HoldItem, verdict: HoldVerdict): void {
    if (item.state === "abandoned") {
      // Its caller got a 503: the money goes back.
      if (verdict.admitted) this.addSettle(release(item.id));
      return;
    }
    item.state = "answered";
    if (verdict.admitted) this.#events.onAdmitted(item);
    item.resolve(verdict);
  }

  #extended(items: readonly ExtendItem[], row: Row): void {
    const verdicts = extendVerdicts(row);
    items.forEach((item, index) => {
      this.#events.onExtended(item);
      const verdict = verdicts?.[index] ?? { heldNanos: BigInt(item.amount) };
      for (const { resolve } of item.waiters) resolve(verdict);
    });
  }

  /** An id of the batch exists already: the batch was sent before, and its answer was lost. */
  #again(batch: Items): void {
    this.#refusedHalves.unshift(batch);
    this.#events.onWork(this);
  }

  /** Halves the batch until the failing operation is isolated, so that the others succeed. */
  #refused(batch: Items, error: unknown): void {
    if (sizeOf(batch) > 1) {
      this.#refusedHalves.unshift(...halves(batch));
      this.#events.onWork(this);
    } else if (batch.settles[0]) {
      this.#settleRefused(batch.settles[0], error);
    } else if (batch.extends[0]) {
      this.#extendRefused(batch.extends[0], error);
    } else if (batch.holds[0]) {
      batch.holds[0].state = "answered";
      batch.holds[0].reject(refusal(error));
    }
    this.#dropIfEmpty();
  }

  /** Tries again with less of the record, and then without it: the money matters more. */
  #settleRefused(item: SettleItem, error: unknown): void {
    this.#events.onRefused(item, error);
    if (!item.record) return item.reject(refusal(error));
    const less: SettleItem = item.isBare
      ? { ...item, record: undefined }
      : { ...item, record: bareRecord(item.record), isBare: true };
    this.#refusedHalves.unshift({ ...nothing, settles: [less] });
    this.#events.onWork(this);
  }

  /** Tries again without the checkpoint: the money matters more. */
  #extendRefused(item: ExtendItem, error: unknown): void {
    this.#events.onRefused(item, error);
    if (item.checkpoint) {
      item.checkpoint = undefined;
      this.#refusedHalves.unshift({ ...nothing, extends: [item] });
      this.#events.onWork(this);
      return;
    }
    this.#events.onExtended(item);
    for (const { reject } of item.waiters) reject(refusal(error));
  }

  #isEmpty(): boolean {
    const waiting = this.#holds.length + this.#settles.length + this.#extends.size;
    return waiting + this.#refusedHalves.length === 0;
  }
}

function sizeOf(batch: Batch): number {
  return batch.settles.length + batch.extends.length + batch.holds.length;
}

function rests(batch: Batch): boolean {
  return sizeOf(batch) >= rest.operations;
}

/**
 * Takes at most `max` items: the list itself if it is short enough, otherwise its head, removed
 * from it.
 */
function upTo<T>(list: T[], max: number): T[] {
  return list.length <= max ? list : list.splice(0, max);
}

/** Splits a batch: by kind of operation if there are several, otherwise in two halves. */
function halves({ settles, extends: grown, holds }: Items): Items[] {
  const kinds: Items[] = [
    { ...nothing, settles },
    { ...nothing, extends: grown },
    { ...nothing, holds },
  ].filter((kind) => sizeOf(kind) > 0);
  if (kinds.length > 1) return kinds;
  const half = (from: 0 | 1): Items => ({
    settles: halfOf(settles, from),
    extends: halfOf(grown, from),
    holds: halfOf(holds, from),
  });
  return [half(0), half(1)];
}

function halfOf<T>(list: readonly T[], which: 0 | 1): readonly T[] {
  const middle = list.length >> 1;
  return which === 0 ? list.slice(0, middle) : list.slice(middle);
}
