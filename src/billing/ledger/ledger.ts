/** The doors to the money: hold, extend, settle, release. Implemented by ledger-writer.ts. */
import {
  holdRenewMs,
  holdSweepMs,
  holdTtlMs,
  holdWaitMs,
  nodeHeartbeatMs,
  nodeSilentMs,
} from "../../config/limits.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { CallRow } from "../calls/call-row.ts";
import type { At } from "./failpoints.ts";
import type { JournalOptions } from "./journal.ts";

/** Money to set aside before a vendor is asked. */
export interface HoldOperation {
  /** A fresh UUIDv7: the id of the call, its hold and its charge. */
  readonly id: string;
  readonly accountId: string;
  /** More than or equal to zero. */
  readonly amountNanos: bigint;
  /** The key that pays: a UUID; empty where there is none. */
  readonly keyId: string;
  /** What the key may spend in its life, in nano-USD. Default: no limit. */
  readonly keyLimitNanos?: bigint;
  /** The call's request id, 1 to 256 visible ASCII characters: what it is found by if this process dies before it has
   * told of itself. Default: not known. */
  readonly requestId?: string;
}

/** What came of a hold. */
export type HoldVerdict =
  | { readonly admitted: true }
  /** The balance, or the key's limit, does not cover it; nothing was set aside. */
  | {
      readonly admitted: false;
      readonly availableNanos: bigint;
      /** The hold of this id has been ended already: it cannot be made again. Only a repetition sees it. */
      readonly closed?: true;
      /** The key's spend limit is what refused it: what is left of it, 0 or more. */
      readonly keyRemainingNanos?: bigint;
    };

/** Grows a hold and tells how far its call is. All figures are absolute: a repetition changes nothing. */
export interface ExtendOperation {
  /** The id of the hold. */
  readonly id: string;
  readonly accountId: string;
  /** The hold is to be at least this. A hold never shrinks: 0 only tells how far the call is. */
  readonly amountNanos: bigint;
  /** What the call would cost if it ended now: what it is charged if this process dies. Default: what was
   * told last, and nothing (the hold is then released) where nothing ever was. */
  readonly checkpointNanos?: bigint;
  /** The record of the call if this process dies; taken with `checkpointNanos` only. Default: one that says
   * only that the call was lost. */
  readonly record?: CallRow;
}

/** What came of an extension. */
export interface ExtendVerdict {
  /** What is held now: `amountNanos` or more where all was granted, less where the balance or the key's
   * limit gave only a part. 0 where the hold is closed. */
  readonly heldNanos: bigint;
  /** The hold was ended before, or never was: nothing grew. */
  readonly closed?: true;
}

/** The end of a hold: charges `costNanos` (0 releases it whole) and writes the call's record. */
export interface SettleOperation {
  /** The id of the hold. */
  readonly id: string;
  readonly accountId: string;
  /** What the call costs, 0 or more. May exceed the hold: the rest comes from what is available, and
   * what even that does not cover is the platform's loss. */
  readonly costNanos: bigint;
  /** The call's record, written in the same transaction; its cost is `costNanos`. Its `vendor_cost` is
   * booked beside the charge. */
  readonly record: CallRow;
}

/** The hot door: operations join the next batch of their account. */
export interface Ledger {
  /**
   * Sets money aside.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE where the database does not answer within
   * {@link LedgerTimings.holdWaitMs}; a hold that turns out to have been made then is released by itself.
   */
  hold(operation: HoldOperation): Promise<HoldVerdict>;
  /**
   * Grows a hold, tells how far its call is, or both. Pending while the database is away, and sent again
   * until it is answered; one that still waits is overtaken by a later one of its hold, and both are
   * answered with what is held then.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE once the ledger is closed.
   */
  extend(operation: ExtendOperation): Promise<ExtendVerdict>;
  /** Ends a hold. Resolves when it is durable; re-sent until it is. Exactly once by its id. */
  settle(operation: SettleOperation): Promise<void>;
  /** Records a call that was refused before a hold; cost 0. Batched, bounded, best effort. */
  record(row: CallRow): void;
}

/** How long things take, in milliseconds. The defaults are those of limits.ts; tests divide them. */
export interface LedgerTimings {
  /** How often a process tells the database that it lives. Default 5,000. */
  readonly heartbeatMs: number;
  /** How long a process is silent before it is taken for dead. Default 20,000. */
  readonly silentMs: number;
  /** How long a hold lives that nobody renews. Default 900,000. */
  readonly holdTtlMs: number;
  /** How often the holds of running calls are renewed. Default 60,000. */
  readonly renewMs: number;
  /** How often is looked for holds of dead processes and expired ones. Default 5,000. */
  readonly sweepMs: number;
  /** How long a hold may wait for the database. Default 900. */
  readonly holdWaitMs: number;
}

/* What a ledger needs to be opened, and what it tells of itself. */

/** What {@link createLedger} needs. Times: see {@link LedgerTimings}; tests that are not about time
 * lengthen `holdWaitMs`, for they run on busy machines. */
export interface LedgerOptions extends Partial<LedgerTimings> {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** How many connections of its own. Default `ledgerConnections`. */
  readonly connections?: number;
  /** Told what an operator should know, without secrets. Default: nobody. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Where settlements are kept that the database does not take. Default: nowhere, they wait for it. */
  readonly journal?: Pick<JournalOptions, "folder" | "entriesMax" | "worker">;
  /** Told what an operator must know, without secrets. Default: `warn`. */
  readonly alarm?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Told when a batch has taken an account below its threshold. Default: nobody. */
  readonly onLowBalance?: (accountId: string, balanceNanos: bigint) => void;
  /** Told of each point that an operation passes: where tests kill the process. Default: nobody. */
  readonly at?: At;
}

/** What the ledger of this process is doing. */
export interface LedgerStats {
  /** Holds of running calls. */
  readonly openHolds: number;
  /** Holds that callers wait for now. */
  readonly waitingHolds: number;
  /** Extensions that are not answered yet. */
  readonly waitingExtends: number;
  /** Settlements that the database does not have yet. Grows while it is away. */
  readonly waitingSettles: number;
  /** Settlements in the journal, of this process and of dead ones, that the database does not have yet. */
  readonly journalEntries: number;
  /** Bytes of this process's journal. */
  readonly journalBytes: number;
  /** Writes to the journal that failed, in all. */
  readonly journalFailures: number;
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

/* How long the ledger's things take, unless a test says otherwise. */

/** The timings of limits.ts, less those that are given. */
export function ledgerTimings(given: Partial<LedgerTimings>): LedgerTimings {
  return {
    heartbeatMs: given.heartbeatMs ?? nodeHeartbeatMs,
    silentMs: given.silentMs ?? nodeSilentMs,
    holdTtlMs: given.holdTtlMs ?? holdTtlMs,
    renewMs: given.renewMs ?? holdRenewMs,
    sweepMs: given.sweepMs ?? holdSweepMs,
    holdWaitMs: given.holdWaitMs ?? holdWaitMs,
  };
}

/* What callers are told while the books cannot be kept. */

/** 503: nothing was charged, and it may work soon. `reason` begins the message. */
export function unavailable(reason: string): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    `${reason}; nothing was charged, try again in a moment`,
    { retryAfterSeconds: 1 },
  );
}
