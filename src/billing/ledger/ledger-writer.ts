/** The hot door to the money: group commit per account, without a timer. */
import { hostname } from "node:os";
import { awayCloseMs, ledgerConnections } from "../../config/limits.ts";
import {
  applyIn,
  type LedgerBatch,
  type LedgerTransaction,
  type LedgerVerdicts,
} from "./apply-in.ts";
import type { Sender, SettleVerdict } from "./batch.ts";
import { CallLog } from "./call-log.ts";
import type { CallRow } from "../calls/call-row.ts";
import { Dispatcher } from "./dispatcher.ts";
import { Extending, Settling, WaitingHolds } from "./pending.ts";
import { Heart, Renewer } from "./lease-renewal.ts";
import type { JournalEntry } from "./journal-segment.ts";
import { Lane, type LaneEvents } from "./account-queue.ts";
import {
  type ExtendItem,
  holdItem,
  type HoldItem,
  settleItem,
  type SettleItem,
} from "./queue-items.ts";
import {
  ledgerTimings,
  unavailable,
  type ExtendOperation,
  type ExtendVerdict,
  type HoldOperation,
  type HoldVerdict,
  type Ledger,
  type LedgerTimings,
  type SettleOperation,
  type LedgerOptions,
  type LedgerStats,
} from "./ledger.ts";
import { type OpenJournal, openJournal } from "./journal-replay.ts";
import { newId } from "../../core/uuid.ts";

/** The ledger of a process. */
export interface LedgerWriter extends Ledger {
  /** This start of this process, a UUID: what its holds and its row in the table of nodes are named by. */
  readonly nodeId: string;
  /** The second door: applies a batch inside the caller's transaction. See {@link applyIn}. */
  applyIn(transaction: LedgerTransaction, batch: LedgerBatch): Promise<LedgerVerdicts>;
  /** What it is doing, for metrics. */
  stats(): LedgerStats;
  /** Resolves when everything is durable that was asked for before. */
  flush(): Promise<void>;
  /**
   * Refuses new holds, makes durable what waits (at most `timeoutMs`, default 10,000), and closes.
   * Settle what runs before. What the database does not take stays in the journal for the next start.
   * Safe to call twice.
   *
   * @returns what the database did not take in time. Without a journal its holds expire, its costs are lost.
   */
  close(timeoutMs?: number): Promise<LedgerStats>;
}

/** Opens the ledger. Connects in the background: holds that come before wait for it. */
export function createLedger(options: LedgerOptions): LedgerWriter {
  return new GroupCommitLedger(options);
}

class GroupCommitLedger implements LedgerWriter, LaneEvents {
  readonly nodeId = newId();
  readonly applyIn = applyIn;
  readonly #timings: LedgerTimings;
  readonly #options: LedgerOptions;
  readonly #warn: NonNullable<LedgerOptions["warn"]>;
  readonly #dispatcher: Dispatcher;
  readonly #heart: Heart;
  readonly #renewer: Renewer;
  readonly #callLog: CallLog;
  /** What every batch says of this process. */
  readonly #sender: { -readonly [K in keyof Sender]: Sender[K] };
  /** By account: those with something waiting or under way. */
  readonly #lanes = new Map<string, Lane>();
  readonly #waiting = new WaitingHolds((accountIds) => {
    for (const accountId of accountIds) this.#lanes.get(accountId)?.dropAbandoned();
  });
  #closed: Promise<LedgerStats> | undefined;
  readonly #journal: OpenJournal | undefined;
  readonly #settling: Settling;
  readonly #extending = new Extending();
  #resends = 0;
  #unknownSettles = 0;
  #refusedSettles = 0;

  constructor(options: LedgerOptions) {
    const timings = ledgerTimings(options);
    this.#timings = timings;
    this.#options = options;
    this.#warn = options.warn ?? (() => {});
    const name = `${hostname()}:${process.pid}`;
    this.#sender = { nodeId: this.nodeId, nodeName: name, holdTtlMs: timings.holdTtlMs };
    this.#dispatcher = new Dispatcher({
      url: options.url,
      connections: options.connections ?? ledgerConnections,
      onResend: (error) => this.#onResend(error),
    });
    this.#renewer = new Renewer(() => this.#dispatcher.wake(this.#renewer), timings);
    this.#callLog = new CallLog(() => this.#dispatcher.wake(this.#callLog));
    this.#journal = options.journal && this.#openJournal(options, options.journal);
    this.#settling = new Settling({
      journal: this.#journal?.own,
      isAway: () => this.#dispatcher.isAway,
    });
    this.#heart = new Heart({
      ...timings,
      nodeId: this.nodeId,
      name,
      onWork: () => this.#dispatcher.wake(this.#heart),
      onAnswered: (revived) => this.#onBeat(revived),
      at: options.at,
    });
    this.#dispatcher.wake(this.#heart);
  }

  hold(operation: HoldOperation): Promise<HoldVerdict> {
    if (this.#closed) return Promise.reject(unavailable("the gateway is stopping"));
    if (this.#journal?.own.isFull)
      return Promise.reject(unavailable("too much waits for the books"));
    if (operation.amountNanos < 0n)
      return Promise.reject(new RangeError("a hold cannot be negative"));
    return new Promise((resolve, reject) => {
      const deadlineMs = performance.now() + this.#timings.holdWaitMs;
      const item = holdItem(operation, { deadlineMs, resolve, reject });
      this.#waiting.add(item);
      this.#lane(operation.accountId).addHold(item);
      this.#options.at?.("hold.queued");
    });
  }

  extend(operation: ExtendOperation): Promise<ExtendVerdict> {
    if (this.#closed) return Promise.reject(unavailable("the gateway is stopping"));
    const answer = this.#extending.add(operation, this.#lane(operation.accountId));
    this.#options.at?.("extend.queued");
    return answer;
  }

  settle(operation: SettleOperation): Promise<void> {
    const { accountId, costNanos } = operation;
    if (costNanos < 0n) return Promise.reject(new RangeError("a cost cannot be negative"));
    return new Promise((resolve, reject) => {
      const item = settleItem(operation, { sinceMs: performance.now(), resolve, reject });
      this.#lane(accountId).addSettle(item);
      this.#settling.add(item);
      this.#options.at?.(costNanos === 0n ? "release.queued" : "settle.queued");
    });
  }

  record(row: CallRow): void {
    this.#callLog.add(row);
  }

  stats(): LedgerStats {
    const journal = this.#journal?.stats();
    return {
      journalEntries: journal?.entries ?? 0,
      journalBytes: journal?.bytes ?? 0,
      journalFailures: journal?.failures ?? 0,
      openHolds: this.#renewer.size,
      waitingHolds: this.#waiting.size,
      waitingExtends: this.#extending.size,
      waitingSettles: this.#settling.size,
      waitingRecords: this.#callLog.size,
      droppedRecords: this.#callLog.dropped,
      resends: this.#resends,
      abandonedHolds: this.#waiting.abandoned,
      unknownSettles: this.#unknownSettles,
      refusedSettles: this.#refusedSettles,
    };
  }

  flush(): Promise<void> {
    return this.#dispatcher.drained();
  }

  close(timeoutMs = 10_000): Promise<LedgerStats> {
    this.#closed ??= this.#close(timeoutMs);
    return this.#closed;
  }

  async #close(timeoutMs: number): Promise<LedgerStats> {
    this.#renewer.stop();
    this.#heart.stop();
    await this.#journal?.stopReplay();
    const isKept = this.#dispatcher.isAway && this.#journal?.own.isReady;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, isKept ? Math.min(awayCloseMs, timeoutMs) : timeoutMs);
    });
    await Promise.race([this.#finish(), timeout]);
    clearTimeout(timer);
    await this.#settling.close();
    const stats = this.stats();
    this.#waiting.close();
    this.#extending.close();
    const { journalEntries } = stats;
    if (journalEntries > 0) {
      this.#warn("settlements wait in the journal for the next start", { journalEntries });
    }
    for (const { id, cost, reject } of this.#settling.unsafe) {
      this.#warn("a settlement could not be made durable: its cost is lost", { callId: id, cost });
      reject(unavailable("the gateway stopped before the call was settled"));
    }
    await this.#dispatcher.close();
    return stats;
  }

  onWork(lane: Lane): void {
    this.#dispatcher.wake(lane);
  }

  onAnswered(): void {
    this.#sender.nodeName = null;
  }

  onAdmitted(item: HoldItem): void {
    // Its own time, not another look at the clock: this runs for every call.
    this.#renewer.add(item.id, item.deadlineMs - this.#timings.holdWaitMs);
  }

  onExtended(item: ExtendItem): void {
    this.#extending.delete(item);
  }

  onSettled(item: SettleItem, verdict: SettleVerdict): void {
    this.#renewer.delete(item.id);
    this.#settling.delete(item.id);
    if (verdict !== "unknown") return;
    this.#unknownSettles++;
    this.#warn("a call was settled that had held nothing: not charged", { callId: item.id });
  }

  onRefused(item: SettleItem | ExtendItem, error: unknown): void {
    const fields = { callId: item.id, err: error };
    if ("waiters" in item) {
      this.#warn("the database refused an extension: its checkpoint is lost", fields);
      return;
    }
    this.#refusedSettles++;
    // Without its record it is tried once more.
    if (!item.record) {
      this.#renewer.delete(item.id);
      this.#settling.delete(item.id);
    }
    const what = item.record ? "the record of a call" : "a settlement";
    this.#warn(`the database refused ${what}: it is lost`, fields);
  }

  onLowBalance(accountId: string, balanceNanos: bigint): void {
    this.#options.onLowBalance?.(accountId, balanceNanos);
  }

  onEmpty(lane: Lane): void {
    this.#lanes.delete(lane.accountId);
  }

  #lane(accountId: string): Lane {
    let lane = this.#lanes.get(accountId);
    if (!lane) {
      lane = new Lane(accountId, this.#sender, this, this.#options.at);
      this.#lanes.set(accountId, lane);
    }
    return lane;
  }

  #openJournal(options: LedgerOptions, own: NonNullable<LedgerOptions["journal"]>): OpenJournal {
    const { url, alarm = this.#warn, at } = options;
    const settle = ({ id, accountId, cost, record }: JournalEntry): Promise<void> =>
      new Promise((resolve, reject) => {
        this.#lane(accountId).addSettle({ id, cost, record, resolve, reject });
      });
    return openJournal({ ...own, url, alarm, settle, ...(at && { at }) });
  }

  #onBeat(revived: boolean): void {
    this.#sender.nodeName = null;
    if (revived) this.#warn("this process had been taken for dead; its calls are corrected", {});
  }

  #onResend(error: unknown): void {
    this.#resends++;
    this.#settling.look();
    this.#warn("a ledger statement is sent again", { err: error });
  }

  /** Whoever leaves something open is looked for: what it left is settled for it. */
  async #finish(): Promise<void> {
    await this.flush();
    if (this.#renewer.size > 0) return;
    this.#heart.end();
    await this.flush();
  }
}
