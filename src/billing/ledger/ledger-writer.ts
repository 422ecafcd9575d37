/** The ledger of a process: group commit per account. */
import { hostname } from "node:os";
import { join } from "node:path";
import { awayCloseMs, ledgerConnections } from "../../core/limits.ts";
import { ShortLivedMap } from "../../core/short-lived.ts";
import { newId } from "../../core/uuid.ts";
import type { CallRow } from "../calls/call-row.ts";
import {
  AccountQueue,
  type AccountQueueEvents,
  type ExtendItem,
  holdItem,
  type HoldItem,
  settleItem,
  type SettleItem,
} from "./account-queue.ts";
import {
  applyIn,
  type LedgerBatch,
  type LedgerTransaction,
  type LedgerVerdicts,
} from "./apply-in.ts";
import type { Sender, SettleVerdict } from "./batch.ts";
import { CallLog } from "./call-log.ts";
import { Dispatcher } from "./dispatcher.ts";
import { Journal } from "../journal/journal.ts";
import type { JournalEntry } from "../journal/journal-entry.ts";
import { JournalFiles } from "../journal/journal-files.ts";
import { JournalReplay, knownHolds } from "../journal/replay.ts";
import { isLasting } from "./ledger-connection.ts";
import { Heartbeat, LeaseRenewal } from "./lease-renewal.ts";
import {
  type ExtendOperation,
  type ExtendVerdict,
  type HoldOperation,
  type HoldVerdict,
  type Ledger,
  type LedgerOptions,
  type LedgerStats,
  ledgerTimings,
  type LedgerTimings,
  type SettleOperation,
  unavailable,
} from "./ledger.ts";
import { PendingExtends } from "./pending-extends.ts";
import { PendingHolds } from "./pending-holds.ts";
import { PendingSettles } from "./pending-settles.ts";

/** The ledger of a process. */
export interface LedgerWriter extends Ledger {
  /**
   * The id of this start of the process, a UUID: its holds and its row in the table of nodes have
   * it.
   */
  readonly nodeId: string;
  /** Applies a batch inside the caller's transaction: {@link applyIn}. */
  applyIn(transaction: LedgerTransaction, batch: LedgerBatch): Promise<LedgerVerdicts>;
  /** Counts for metrics. */
  stats(): LedgerStats;
  /** Why the ledger cannot work until the database is repaired; `undefined` if it can. */
  readonly blockedBy: string | undefined;
  /** Resolves when all operations that were requested before are durable. */
  flush(): Promise<void>;
  /**
   * Refuses new holds, makes pending operations durable for at most `timeoutMs` (default 10,000),
   * and closes. Settle running calls before. Settlements that the database does not take stay in
   * the journal for the next start. Safe to call twice.
   *
   * @returns the counts of what the database did not take in time. Without a journal those costs
   * are lost.
   */
  close(timeoutMs?: number): Promise<LedgerStats>;
}

/** Opens the ledger. It connects in the background; earlier holds wait for the connection. */
export function createLedger(options: LedgerOptions): LedgerWriter {
  return new GroupCommitLedger(options);
}

class GroupCommitLedger implements LedgerWriter, AccountQueueEvents {
  readonly nodeId = newId();
  readonly applyIn = applyIn;
  readonly #timings: LedgerTimings;
  readonly #options: LedgerOptions;
  readonly #warn: NonNullable<LedgerOptions["warn"]>;
  readonly #dispatcher: Dispatcher;
  readonly #heartbeat: Heartbeat;
  readonly #leases: LeaseRenewal;
  readonly #callLog: CallLog;
  /** Identifies this process in every batch. */
  readonly #sender: { -readonly [K in keyof Sender]: Sender[K] };
  /** By account: queues with pending operations or a batch under way. */
  readonly #queues = new ShortLivedMap<AccountQueue>();
  readonly #pendingHolds = new PendingHolds((accountIds) => {
    for (const accountId of accountIds) this.#queues.get(accountId)?.dropAbandoned();
  });
  #closed: Promise<LedgerStats> | undefined;
  readonly #journal: Journal | undefined;
  readonly #replay: JournalReplay | undefined;
  readonly #pendingSettles: PendingSettles;
  readonly #pendingExtends = new PendingExtends();
  blockedBy: string | undefined;
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
      onBlocked: (error) => this.#onBlocked(error),
      onUnblocked: () => this.#onUnblocked(),
    });
    this.#leases = new LeaseRenewal(() => this.#dispatcher.wake(this.#leases), timings);
    this.#callLog = new CallLog(() => this.#dispatcher.wake(this.#callLog));
    const { journal } = options;
    if (journal !== undefined) {
      const { folder, names = new JournalFiles(folder).assign(), entriesMax } = journal;
      const { alarm = this.#warn, failpoint } = options;
      this.#journal = new Journal({
        path: join(folder, names.own),
        alarm,
        ...(entriesMax !== undefined && { entriesMax }),
        ...(failpoint && { failpoint }),
      });
      this.#replay = new JournalReplay({
        folder,
        left: names.left,
        findKnown: (entries) => knownHolds(options.url, entries),
        settle: (entry) => this.#settleLeft(entry),
        alarm,
        failpoint,
      });
      this.#replay.start();
    }
    this.#pendingSettles = new PendingSettles({
      journal: this.#journal,
      isAway: () => this.#dispatcher.isAway,
    });
    this.#heartbeat = new Heartbeat({
      ...timings,
      nodeId: this.nodeId,
      name,
      onWork: () => this.#dispatcher.wake(this.#heartbeat),
      onAnswered: (revived) => this.#onHeartbeat(revived),
      failpoint: options.failpoint,
    });
    this.#dispatcher.wake(this.#heartbeat);
  }

  hold(operation: HoldOperation): Promise<HoldVerdict> {
    if (this.#closed) return Promise.reject(unavailable("the gateway is stopping"));
    if (this.#journal?.isFull) return Promise.reject(unavailable("the settlement backlog is full"));
    if (operation.amountNanos < 0n)
      return Promise.reject(new RangeError("a hold cannot be negative"));
    return new Promise((resolve, reject) => {
      const deadlineMs = performance.now() + this.#timings.holdWaitMs;
      const item = holdItem(operation, { deadlineMs, resolve, reject });
      this.#pendingHolds.add(item);
      this.#queueOf(operation.accountId).addHold(item);
      this.#options.failpoint?.("hold.queued");
    });
  }

  extend(operation: ExtendOperation): Promise<ExtendVerdict> {
    if (this.#closed) return Promise.reject(unavailable("the gateway is stopping"));
    const answer = this.#pendingExtends.add(operation, this.#queueOf(operation.accountId));
    this.#options.failpoint?.("extend.queued");
    return answer;
  }

  settle(operation: SettleOperation): Promise<void> {
    const { accountId, costNanos } = operation;
    if (costNanos < 0n) return Promise.reject(new RangeError("a cost cannot be negative"));
    return new Promise((resolve, reject) => {
      const item = settleItem(operation, { sinceMs: performance.now(), resolve, reject });
      this.#queueOf(accountId).addSettle(item);
      this.#pendingSettles.add(item);
      this.#options.failpoint?.(costNanos === 0n ? "release.queued" : "settle.queued");
    });
  }

  record(row: CallRow): void {
    this.#callLog.add(row);
  }

  stats(): LedgerStats {
    const journal = this.#journal?.stats();
    return {
      journalEntries: (journal?.entries ?? 0) + (this.#replay?.entries ?? 0),
      journalBytes: journal?.bytes ?? 0,
      journalFailures: journal?.failures ?? 0,
      openHolds: this.#leases.size,
      pendingHolds: this.#pendingHolds.size,
      pendingExtends: this.#pendingExtends.size,
      pendingSettles: this.#pendingSettles.size,
      pendingRecords: this.#callLog.size,
      droppedRecords: this.#callLog.dropped,
      resends: this.#resends,
      abandonedHolds: this.#pendingHolds.abandoned,
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
    this.#leases.stop();
    this.#heartbeat.stop();
    await this.#replay?.stop();
    const isKept = this.#dispatcher.isAway && this.#journal?.isReady;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, isKept ? Math.min(awayCloseMs, timeoutMs) : timeoutMs);
    });
    await Promise.race([this.#flushAndEndNode(), timeout]);
    clearTimeout(timer);
    await this.#pendingSettles.close();
    const stats = this.stats();
    this.#pendingHolds.close();
    this.#pendingExtends.close();
    const { journalEntries } = stats;
    if (journalEntries > 0) {
      this.#warn("settlements stay in the journal for the next start", { journalEntries });
    }
    for (const { id, cost, reject } of this.#pendingSettles.unsafe) {
      this.#warn("a settlement could not be made durable: its cost is lost", { callId: id, cost });
      reject(unavailable("the gateway stopped before the call was settled"));
    }
    await this.#dispatcher.close();
    return stats;
  }

  onWork(queue: AccountQueue): void {
    this.#dispatcher.wake(queue);
  }

  onAnswered(): void {
    this.#sender.nodeName = null;
  }

  onAdmitted(item: HoldItem): void {
    // Computed from its deadline instead of another clock read: this runs for every call.
    this.#leases.add(item.id, item.deadlineMs - this.#timings.holdWaitMs);
  }

  onExtended(item: ExtendItem): void {
    this.#pendingExtends.delete(item);
  }

  onSettled(item: SettleItem, verdict: SettleVerdict): void {
    this.#leases.delete(item.id);
    this.#pendingSettles.delete(item.id);
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
    // With a record, the queue tries again with less of it.
    if (!item.record) {
      this.#leases.delete(item.id);
      this.#pendingSettles.delete(item.id);
    }
    this.#warn(`the database refused ${refusedPart(item)}`, fields);
  }

  onLowBalance(accountId: string, balanceNanos: bigint): void {
    this.#options.onLowBalance?.(accountId, balanceNanos);
  }

  onLoss(accountId: string, lossNanos: bigint): void {
    this.#options.onLoss?.(accountId, lossNanos);
  }

  onEmpty(queue: AccountQueue): void {
    // A queue may report this twice, if it has a turn left. Its account may have a new queue by
    // then, which is not empty.
    if (this.#queues.get(queue.accountId) === queue) this.#queues.delete(queue.accountId);
  }

  #queueOf(accountId: string): AccountQueue {
    let queue = this.#queues.get(accountId);
    if (!queue) {
      queue = new AccountQueue(accountId, this.#sender, this, this.#options.failpoint);
      this.#queues.set(accountId, queue);
    }
    return queue;
  }

  /** Books a settlement that an ended process left in its journal. */
  #settleLeft({ id, accountId, cost, record }: JournalEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queueOf(accountId).addSettle({ id, cost, record, resolve, reject });
    });
  }

  #onHeartbeat(revived: boolean): void {
    this.#sender.nodeName = null;
    if (revived) this.#warn("this process had been declared dead; its calls are corrected", {});
  }

  #onResend(error: unknown): void {
    this.#resends++;
    this.#pendingSettles.journalOverdue();
    // Logged once, however often the statement is sent.
    if (!isLasting(error)) this.#warn("a ledger statement is sent again", { err: error });
  }

  #onBlocked(error: unknown): void {
    this.blockedBy = "the database refuses statements of the ledger; the log has its reason";
    const message =
      "the database refuses a ledger statement: repair the database, for example its grants; " +
      "the statement is sent again until it passes, and /readyz answers 503";
    this.#warn(message, { err: error });
  }

  #onUnblocked(): void {
    this.blockedBy = undefined;
    this.#warn("the database accepts the ledger's statements again", {});
  }

  /** Reports the end of this process only if no hold is open: open ones must be recovered. */
  async #flushAndEndNode(): Promise<void> {
    await this.flush();
    if (this.#leases.size > 0) return;
    this.#heartbeat.end();
    await this.flush();
  }
}

/** Returns the refused part and its further handling, for the log. */
function refusedPart({ record, isBare }: SettleItem): string {
  if (record === undefined) return "a settlement: it is lost";
  return isBare
    ? "the record of a call: the call is charged without one"
    : "the record of a call: only who was charged, how much and when is recorded";
}
