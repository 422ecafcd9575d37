/** The queue of one account: its operations wait here for the next batch, one batch is under way. */
import { ledgerBatchMax } from "../../config/limits.ts";
import {
  applyStatement,
  applyValues,
  type Batch,
  extendVerdicts,
  holdVerdicts,
  lowBalance,
  type Sender,
  type SettleVerdict,
  settleVerdicts,
} from "./batch.ts";
import type { Source, Work } from "./dispatcher.ts";
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
import { type At, tellPoints } from "./failpoints.ts";

/** What a lane tells the ledger. */
export interface LaneEvents {
  /** There is work: give the lane a turn. */
  onWork(lane: Lane): void;
  /** The database has answered a batch. */
  onAnswered(): void;
  /** A hold is made and its caller knows. */
  onAdmitted(item: HoldItem): void;
  /** An extension is answered. */
  onExtended(item: ExtendItem): void;
  /** A settlement is durable. */
  onSettled(item: SettleItem, verdict: SettleVerdict): void;
  /** A settlement, or an extension's checkpoint, cannot be booked, by no repetition: a fault of this program. */
  onRefused(item: SettleItem | ExtendItem, error: unknown): void;
  /** The account has fallen below its threshold. */
  onLowBalance(accountId: string, balanceNanos: bigint): void;
  /** Nothing waits and nothing is under way. */
  onEmpty(lane: Lane): void;
}

interface Items extends Batch {
  readonly settles: readonly SettleItem[];
  readonly extends: readonly ExtendItem[];
  readonly holds: readonly HoldItem[];
}

const nothing: Items = { settles: [], extends: [], holds: [] };

/** The operations of one account. */
export class Lane implements Source {
  readonly accountId: string;
  readonly #events: LaneEvents;
  readonly #sender: Sender;
  readonly #at: At | undefined;
  #settles: SettleItem[] = [];
  /** By hold: a later one overtakes the one that waits. */
  #extends = new Map<string, ExtendItem>();
  #holds: HoldItem[] = [];
  /** Parts of a batch that the database refused as a whole, to find the one that is at fault. */
  #parts: Items[] = [];

  /** `sender` is read with each batch. `at`: told of each point of an operation. */
  constructor(accountId: string, sender: Sender, events: LaneEvents, at?: At) {
    this.accountId = accountId;
    this.#sender = sender;
    this.#events = events;
    this.#at = at;
  }

  /** Adds a hold to the next batch. */
  addHold(item: HoldItem): void {
    this.#holds.push(item);
    this.#events.onWork(this);
  }

  /** Adds an extension to the next batch. Returns the item that is sent: another one's where it joins it. */
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

  /** Forgets the holds that nobody waits for and that were never sent. */
  dropAbandoned(): void {
    this.#holds = this.#holds.filter((item) => item.state === "waiting");
  }

  /** The next batch: what queued while the last one was under way. */
  take(): Work | undefined {
    const part = this.#parts.shift();
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
    const at = this.#at;
    return {
      statement: applyStatement,
      values: applyValues(this.accountId, batch, this.#sender, isFresh),
      ...(at && { sent: () => tellPoints(at, batch, "sent") }),
      done: (row) => this.#done(batch, row),
      refused: (error) => {
        if (isFresh && isDuplicate(error)) this.#again(batch);
        else this.#refused(batch, error);
      },
    };
  }

  #done(batch: Items, row: Row): void {
    if (this.#at) tellPoints(this.#at, batch, "answered");
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
    if (this.#isEmpty()) this.#events.onEmpty(this);
  }

  #answer(item: HoldItem, verdict: HoldVerdict): void {
    if (item.state === "abandoned") {
      // Its caller was told 503: the money goes back.
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

  /** Something of the batch is there already: it was sent before, and its answer got lost. */
  #again(batch: Items): void {
    this.#parts.unshift(batch);
    this.#events.onWork(this);
  }

  /** Halves the batch until the operation at fault stands alone; the others must not suffer. */
  #refused(batch: Items, error: unknown): void {
    if (sizeOf(batch) > 1) {
      this.#parts.unshift(...halves(batch));
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

  /** The money counts more than its record. */
  #settleRefused(item: SettleItem, error: unknown): void {
    this.#events.onRefused(item, error);
    if (!item.record) return item.reject(refusal(error));
    this.#parts.unshift({ ...nothing, settles: [{ ...item, record: undefined }] });
    this.#events.onWork(this);
  }

  /** The money counts more than the checkpoint. */
  #extendRefused(item: ExtendItem, error: unknown): void {
    this.#events.onRefused(item, error);
    if (item.checkpoint) {
      item.checkpoint = undefined;
      this.#parts.unshift({ ...nothing, extends: [item] });
      this.#events.onWork(this);
      return;
    }
    this.#events.onExtended(item);
    for (const { reject } of item.waiters) reject(refusal(error));
  }

  #isEmpty(): boolean {
    const waiting = this.#holds.length + this.#settles.length + this.#extends.size;
    return waiting + this.#parts.length === 0;
  }
}

function sizeOf(batch: Batch): number {
  return batch.settles.length + batch.extends.length + batch.holds.length;
}

/** The list itself where it is short enough, else its head, cut off. */
function upTo<T>(list: T[], max: number): T[] {
  return list.length <= max ? list : list.splice(0, max);
}

/** By kinds, in their order, where there are several; else the two halves of the one kind. */
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
