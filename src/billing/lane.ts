/** The queue of one account: its operations wait here for the next batch, one batch is under way. */
import { ledgerBatchMax } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import {
  applyStatement,
  applyValues,
  type BatchHold,
  type BatchSettle,
  holdVerdicts,
  type SettleVerdict,
  settleVerdicts,
} from "./batch.ts";
import type { Source, Work } from "./dispatcher.ts";
import type { HoldVerdict } from "./ledger.ts";
import type { Row } from "./link.ts";

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

/** A settlement that waits to become durable. */
export interface SettleItem extends BatchSettle {
  readonly resolve: () => void;
  readonly reject: (error: GatewayError) => void;
}

/** What a lane tells the ledger. */
export interface LaneEvents {
  /** There is work: give the lane a turn. */
  onWork(lane: Lane): void;
  /** A hold is made and its caller knows. */
  onAdmitted(item: HoldItem): void;
  /** A settlement is durable. */
  onSettled(item: SettleItem, verdict: SettleVerdict): void;
  /** A settlement cannot be booked, by no repetition: a fault of this program. */
  onRefused(item: SettleItem, error: unknown): void;
  /** Nothing waits and nothing is under way. */
  onEmpty(lane: Lane): void;
}

interface Batch {
  readonly holds: readonly HoldItem[];
  readonly settles: readonly SettleItem[];
}

/** The operations of one account. */
export class Lane implements Source {
  readonly accountId: string;
  readonly #events: LaneEvents;
  readonly #ttlMs: number;
  #holds: HoldItem[] = [];
  #settles: SettleItem[] = [];
  /** Parts of a batch that the database refused as a whole, to find the one that is at fault. */
  #parts: Batch[] = [];

  constructor(accountId: string, ttlMs: number, events: LaneEvents) {
    this.accountId = accountId;
    this.#ttlMs = ttlMs;
    this.#events = events;
  }

  /** Adds a hold to the next batch. */
  addHold(item: HoldItem): void {
    this.#holds.push(item);
    this.#events.onWork(this);
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
    const batch = this.#parts.shift() ?? this.#nextBatch();
    if (!this.#isEmpty()) this.#events.onWork(this);
    if (batch.holds.length + batch.settles.length > 0) return this.#work(batch);
    this.#events.onEmpty(this);
    return undefined;
  }

  #nextBatch(): Batch {
    const settles = upTo(this.#settles, ledgerBatchMax);
    if (settles === this.#settles) this.#settles = [];
    const holds = upTo(this.#holds, ledgerBatchMax - settles.length);
    if (holds === this.#holds) this.#holds = [];
    for (const item of holds) item.state = "sent";
    return { holds, settles };
  }

  #work(batch: Batch): Work {
    return {
      statement: applyStatement,
      values: applyValues(this.accountId, batch, this.#ttlMs),
      done: (row) => this.#done(batch, row),
      refused: (error) => this.#refused(batch, error),
    };
  }

  #done(batch: Batch, row: Row): void {
    const holds = holdVerdicts(row);
    batch.holds.forEach((item, index) => this.#answer(item, holds?.[index] ?? { admitted: true }));
    const settles = settleVerdicts(row);
    batch.settles.forEach((item, index) => {
      this.#events.onSettled(item, settles?.[index] ?? "settled");
      item.resolve();
    });
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

  /** Halves the batch until the operation at fault stands alone; the others must not suffer. */
  #refused(batch: Batch, error: unknown): void {
    const { holds, settles } = batch;
    const only = settles[0];
    if (holds.length + settles.length > 1) {
      this.#parts.unshift(...halves(batch));
      this.#events.onWork(this);
    } else if (only?.record) {
      // The money counts more than its record.
      this.#events.onRefused(only, error);
      this.#parts.unshift({ holds: [], settles: [{ ...only, record: undefined }] });
      this.#events.onWork(this);
    } else if (only) {
      this.#events.onRefused(only, error);
      only.reject(refusal(error));
    } else if (holds[0]) {
      holds[0].state = "answered";
      holds[0].reject(refusal(error));
    }
    if (this.#isEmpty()) this.#events.onEmpty(this);
  }

  #isEmpty(): boolean {
    return this.#holds.length + this.#settles.length + this.#parts.length === 0;
  }
}

/** A settlement of nothing, without a record and with nobody waiting. */
function release(id: string): SettleItem {
  return { id, cost: "0", record: undefined, resolve() {}, reject() {} };
}

function refusal(cause: unknown): GatewayError {
  return new GatewayError(ErrorCode.INTERNAL_ERROR, "the gateway could not book this call", {
    internal: "the ledger refused the operation as invalid",
    cause,
  });
}

/** The list itself where it is short enough, else its head, cut off. */
function upTo<T>(list: T[], max: number): T[] {
  return list.length <= max ? list : list.splice(0, max);
}

function halves({ holds, settles }: Batch): Batch[] {
  if (holds.length > 0 && settles.length > 0)
    return [
      { holds: [], settles },
      { holds, settles: [] },
    ];
  const [h, s] = [holds.length >> 1, settles.length >> 1];
  return [
    { holds: holds.slice(0, h), settles: settles.slice(0, s) },
    { holds: holds.slice(h), settles: settles.slice(s) },
  ];
}
