/** The hot door to the money: group commit per account, without a timer. */
import { holdTtlMs, holdWaitMs, ledgerConnections } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import {
  applyIn,
  type LedgerBatch,
  type LedgerTransaction,
  type LedgerVerdicts,
} from "./apply-in.ts";
import type { SettleVerdict } from "./batch.ts";
import { CallLog } from "./call-log.ts";
import type { CallRow } from "./call-row.ts";
import { Dispatcher } from "./dispatcher.ts";
import { type HoldItem, Lane, type LaneEvents, type SettleItem } from "./lane.ts";
import type { HoldOperation, HoldVerdict, Ledger, SettleOperation } from "./ledger.ts";
import { Renewer } from "./renewer.ts";

/** What {@link createLedger} needs. */
export interface LedgerOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** How many connections of its own. Default `ledgerConnections`. */
  readonly connections?: number;
  /** How long a hold lives unless renewed, in milliseconds. Default `holdTtlMs`; tests shorten it. */
  readonly holdTtlMs?: number;
  /** How long a hold may wait for the database, in milliseconds. Default `holdWaitMs`; tests that are not
   * about time lengthen it, for they run on busy machines. */
  readonly holdWaitMs?: number;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** What the ledger of this process is doing. */
export interface LedgerStats {
  /** Holds of running calls. */
  readonly openHolds: number;
  /** Holds that callers wait for now. */
  readonly waitingHolds: number;
  /** Settlements that are not durable yet. Grows while the database is away. */
  readonly waitingSettles: number;
  /** Records of refused calls that are not written yet. */
  readonly waitingRecords: number;
  /** Records of refused calls that were lost, in all. */
  readonly droppedRecords: number;
  /** Batches that were sent again, in all. */
  readonly resends: number;
  /** Holds that were answered with 503, in all. */
  readonly abandonedHolds: number;
  /** Settlements of holds that never were, in all: each is a fault of this program. */
  readonly unknownSettles: number;
  /** Settlements that the database refused as invalid, in all: each is a fault of this program. */
  readonly refusedSettles: number;
}

/** The ledger of a process. */
export interface LedgerWriter extends Ledger {
  /** The second door: applies a batch inside the caller's transaction. See {@link applyIn}. */
  applyIn(transaction: LedgerTransaction, batch: LedgerBatch): Promise<LedgerVerdicts>;
  /** What it is doing, for metrics. */
  stats(): LedgerStats;
  /** Resolves when everything is durable that was asked for before. */
  flush(): Promise<void>;
  /**
   * Refuses new holds, makes durable what waits (at most `timeoutMs`, default 10,000), and closes.
   * Settle what runs before.
   *
   * @returns what could not be made durable in time: its holds expire, its costs are lost.
   */
  close(timeoutMs?: number): Promise<LedgerStats>;
}

/** How often is looked for holds that waited too long, in milliseconds: with `holdWaitMs` under 1 s. */
const deadlineLookMs = 50;

/** Opens the ledger. Connects in the background: holds that come before wait for it. */
export function createLedger(options: LedgerOptions): LedgerWriter {
  return new GroupCommitLedger(options);
}

class GroupCommitLedger implements LedgerWriter, LaneEvents {
  readonly #ttlMs: number;
  readonly #waitMs: number;
  readonly #warn: NonNullable<LedgerOptions["warn"]>;
  readonly #dispatcher: Dispatcher;
  readonly #renewer: Renewer;
  readonly #callLog: CallLog;
  /** By account: those with something waiting or under way. */
  readonly #lanes = new Map<string, Lane>();
  /** All holds that callers wait for, in the order of their deadlines; answered ones leave with the next look. */
  #waiting: HoldItem[] = [];
  #deadlineTimer: NodeJS.Timeout | undefined;
  #closing = false;
  /** Settlements of callers that are not durable yet. */
  readonly #settling = new Set<SettleItem>();
  #resends = 0;
  #abandonedHolds = 0;
  #unknownSettles = 0;
  #refusedSettles = 0;

  constructor(options: LedgerOptions) {
    this.#ttlMs = options.holdTtlMs ?? holdTtlMs;
    this.#waitMs = options.holdWaitMs ?? holdWaitMs;
    this.#warn = options.warn ?? (() => {});
    this.#dispatcher = new Dispatcher({
      url: options.url,
      connections: options.connections ?? ledgerConnections,
      onResend: (error) => this.#onResend(error),
    });
    this.#renewer = new Renewer(() => this.#dispatcher.wake(this.#renewer), this.#ttlMs);
    this.#callLog = new CallLog(() => this.#dispatcher.wake(this.#callLog));
  }

  hold(operation: HoldOperation): Promise<HoldVerdict> {
    const { id, accountId, amountNanos } = operation;
    if (this.#closing) return Promise.reject(unavailable("the gateway is stopping"));
    if (amountNanos < 0n) return Promise.reject(new RangeError("a hold cannot be negative"));
    return new Promise((resolve, reject) => {
      const deadlineMs = performance.now() + this.#waitMs;
      const amount = amountNanos.toString();
      const item: HoldItem = {
        id,
        accountId,
        amount,
        deadlineMs,
        resolve,
        reject,
        state: "waiting",
      };
      this.#waiting.push(item);
      this.#deadlineTimer ??= setInterval(() => this.#lookForDeadlines(), deadlineLookMs);
      this.#lane(accountId).addHold(item);
    });
  }

  settle(operation: SettleOperation): Promise<void> {
    const { id, accountId, costNanos, record } = operation;
    if (costNanos < 0n) return Promise.reject(new RangeError("a cost cannot be negative"));
    const cost = costNanos.toString();
    return new Promise((resolve, reject) => {
      const same = record.id === id && record.cost === cost && record.account_id === accountId;
      const row = same ? record : { ...record, id, cost, account_id: accountId };
      const item: SettleItem = { id, cost, record: row, resolve, reject };
      this.#settling.add(item);
      this.#lane(accountId).addSettle(item);
    });
  }

  record(row: CallRow): void {
    this.#callLog.add(row);
  }

  applyIn(transaction: LedgerTransaction, batch: LedgerBatch): Promise<LedgerVerdicts> {
    return applyIn(transaction, batch);
  }

  stats(): LedgerStats {
    return {
      openHolds: this.#renewer.size,
      waitingHolds: this.#waiting.filter((item) => isPending(item)).length,
      waitingSettles: this.#settling.size,
      waitingRecords: this.#callLog.size,
      droppedRecords: this.#callLog.dropped,
      resends: this.#resends,
      abandonedHolds: this.#abandonedHolds,
      unknownSettles: this.#unknownSettles,
      refusedSettles: this.#refusedSettles,
    };
  }

  flush(): Promise<void> {
    return this.#dispatcher.drained();
  }

  async close(timeoutMs = 10_000): Promise<LedgerStats> {
    this.#closing = true;
    this.#renewer.stop();
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    await Promise.race([this.flush(), timeout]);
    clearTimeout(timer);
    const stats = this.stats();
    for (const item of this.#waiting) this.#abandon(item);
    for (const { id, cost, reject } of this.#settling) {
      this.#warn("a settlement could not be made durable: its cost is lost", { callId: id, cost });
      reject(unavailable("the gateway stopped before the call was settled"));
    }
    this.#lookForDeadlines();
    await this.#dispatcher.close();
    return stats;
  }

  onWork(lane: Lane): void {
    this.#dispatcher.wake(lane);
  }

  onAdmitted(item: HoldItem): void {
    // Its own time, not another look at the clock: this runs for every call.
    this.#renewer.add(item.id, item.deadlineMs - this.#waitMs);
  }

  onSettled(item: SettleItem, verdict: SettleVerdict): void {
    this.#renewer.delete(item.id);
    this.#settling.delete(item);
    if (verdict !== "unknown") return;
    this.#unknownSettles++;
    this.#warn("a call was settled that had held nothing: not charged", { callId: item.id });
  }

  onRefused(item: SettleItem, error: unknown): void {
    this.#refusedSettles++;
    this.#settling.delete(item);
    if (!item.record) this.#renewer.delete(item.id);
    const what = item.record ? "the record of a call" : "a settlement";
    this.#warn(`the database refused ${what}: it is lost`, { callId: item.id, err: error });
  }

  onEmpty(lane: Lane): void {
    this.#lanes.delete(lane.accountId);
  }

  #lane(accountId: string): Lane {
    let lane = this.#lanes.get(accountId);
    if (!lane) {
      lane = new Lane(accountId, this.#ttlMs, this);
      this.#lanes.set(accountId, lane);
    }
    return lane;
  }

  #onResend(error: unknown): void {
    this.#resends++;
    this.#warn("a ledger statement is sent again", { err: error });
  }

  /** One look for all holds: a timer for each would cost more than the rest of a hold. */
  #lookForDeadlines(): void {
    const now = performance.now();
    const first = this.#waiting.findIndex((item) => isPending(item) && item.deadlineMs > now);
    const passed = this.#waiting.splice(0, first < 0 ? this.#waiting.length : first);
    const lanes = new Set(
      passed.filter((item) => this.#abandon(item)).map((item) => item.accountId),
    );
    for (const accountId of lanes) this.#lanes.get(accountId)?.dropAbandoned();
    if (this.#waiting.length > 0) return;
    clearInterval(this.#deadlineTimer);
    this.#deadlineTimer = undefined;
  }

  /** Tells the caller of a hold that it takes too long. Returns whether somebody had waited. */
  #abandon(item: HoldItem): boolean {
    if (!isPending(item)) return false;
    item.state = "abandoned";
    this.#abandonedHolds++;
    item.reject(unavailable("the balance cannot be checked right now"));
    return true;
  }
}

function isPending(item: HoldItem): boolean {
  return item.state === "waiting" || item.state === "sent";
}

function unavailable(reason: string): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    `${reason}; nothing was charged, try again in a moment`,
    { retryAfterSeconds: 1 },
  );
}
