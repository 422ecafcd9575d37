/** The queue of one account: operations join its next batch while one batch is under way (group commit, no timer). */
import { ledgerBatchMax } from "../../config/limits.ts";
import {
  applyStatement,
  applyValues,
  extendVerdicts,
  holdVerdicts,
  lowBalance,
  platformLoss,
  settleVerdicts,
  hitFailpoints,
  type Batch,
  type Sender,
  type SettleVerdict,
} from "./batch.ts";
import type { WorkSource, Work } from "./dispatcher.ts";
import {
  type ExtendItem,
  type HoldItem,
  merge,
  refusal,
  release,
  type SettleItem,
} from "./queue-items.ts";
import type { HoldVerdict } from "./ledger.ts";
import { isDuplicate, type Row } from "./connection.ts";
import { type Failpoint } from "./failpoints.ts";

/** Callbacks from an account's queue to the ledger. */
export interface AccountQueueEvents {
  /** The queue has a batch to send. */
  onWork(queue: AccountQueue): void;
  /** The database has answered a batch. */
  onAnswered(): void;
  /** A hold was placed, and its caller knows. */
  onAdmitted(item: HoldItem): void;
  /** An extension is answered. */
  onExtended(item: ExtendItem): void;
  /** A settlement is durable. */
  onSettled(item: SettleItem, verdict: SettleVerdict): void;
  /** The database refused a settlement or an extension's checkpoint as invalid: a fault of this program. */
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

const nothing: Items = { settles: [], extends: [], holds: [] };

/** Batches the operations of one account. */
export class AccountQueue implements WorkSource {
  readonly accountId: string;
  readonly #events: AccountQueueEvents;
  readonly #sender: Sender;
  readonly #failpoint: Failpoint | undefined;
  #settles: SettleItem[] = [];
  /** By hold: a later extension merges into the pending one. */
  #extends = new Map<string, ExtendItem>();
  #holds: HoldItem[] = [];
  /** Halves of a batch that the database refused as a whole: they isolate the operation at fault. */
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

  /** Adds an extension to the next batch. Returns the item that is sent: the pending one of the same hold, if any. */
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
    let room = ledgerBatchMax - settles.length;
    const grown = this.#extends.size > 0 ? this.#takeExtends(room) : nothing.extends;
    room -= grown.length;
    const holds = upTo(this.#holds, room);
    if (holds === this.#holds) this.#holds = [];
    for (const item of holds) item.state = "sent";
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
      values: applyValues(this.accountId, batch, this.#sender, isFresh),
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

  /** Halves the batch until the operation at fault stands alone; the others must not suffer. */
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
    if (this.#isEmpty()) this.#events.onEmpty(this);
  }

  /** Tries again without the record: the money matters more. */
  #settleRefused(item: SettleItem, error: unknown): void {
    this.#events.onRefused(item, error);
    if (!item.record) return item.reject(refusal(error));
    this.#refusedHalves.unshift({ ...nothing, settles: [{ ...item, record: undefined }] });
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

/** Takes at most `max` items: the list itself where it is short enough, otherwise its head, removed from it. */
function upTo<T>(list: T[], max: number): T[] {
  return list.length <= max ? list : list.splice(0, max);
}

/** Splits a batch: by kind of operation where there are several, otherwise in two halves. */
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
