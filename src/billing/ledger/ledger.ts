/** The ledger's interface: hold, extend, settle, release. ledger-writer.ts implements it. */
import {
  holdRenewMs,
  holdRecoveryMs,
  holdTtlMs,
  holdWaitMs,
  nodeHeartbeatMs,
  nodeSilentMs,
} from "../../core/limits.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { CallRow } from "../calls/call-row.ts";
import type { Failpoint } from "./failpoints.ts";
import type { JournalNames } from "../journal/journal-files.ts";
import type { DatabaseAddress } from "../../db/pool/server.ts";

/** Reserves money before a vendor is called. */
export interface HoldOperation {
  /** A fresh UUIDv7: the id of the call, its hold and its charge. */
  readonly id: string;
  readonly accountId: string;
  /** More than or equal to zero. */
  readonly amountNanos: bigint;
  /** ID of the paying key, a UUID; empty if there is none. */
  readonly keyId: string;
  /** Total spend limit of the key in nano-USD. Default: no limit. */
  readonly keyLimitNanos?: bigint;
  /**
   * The call's request id, 1 to 256 visible ASCII characters: it finds the call if this process
   * dies before writing its record. Default: not known.
   */
  readonly requestId?: string;
}

/** The result of a hold. */
export type HoldVerdict =
  | {
      readonly admitted: true;
      /**
       * The account or one of its keys has budgets: what the call costs beyond the hold must be
       * held first.
       */
      readonly isBudgeted?: true;
    }
  /** The balance, the key's limit or a budget does not cover it; nothing was reserved. */
  | {
      readonly admitted: false;
      readonly availableNanos: bigint;
      /** The hold of this id has ended already. Only a repetition sees it. */
      readonly closed?: true;
      /** Set if the key's spend limit refused the hold: the rest of that limit, 0 or more. */
      readonly keyRemainingNanos?: bigint;
      /** Set if a budget refused the hold. */
      readonly budget?: BudgetLeft;
    };

/** A budget that does not cover a hold. */
export interface BudgetLeft {
  readonly owner: "account" | "key";
  /** A BudgetPeriod: 1 day, 2 week, 3 month. */
  readonly period: number;
  readonly amountNanos: bigint;
  /** Remaining amount, 0 or more. */
  readonly remainingNanos: bigint;
  /** When its period ends. */
  readonly resetTime: Date;
  /** The time zone of its periods, an IANA name. */
  readonly timeZone: string;
}

/**
 * Extends a hold and checkpoints its call. All figures are absolute: a repetition changes nothing.
 */
export interface ExtendOperation {
  /** The id of the hold. */
  readonly id: string;
  readonly accountId: string;
  /** The wanted amount of the hold. A hold never shrinks: 0 only writes the checkpoint. */
  readonly amountNanos: bigint;
  /**
   * The cost of the call if it ended now: its charge if this process dies. Default: the last
   * checkpoint's; without any, the hold is released.
   */
  readonly checkpointNanos?: bigint;
  /**
   * The record of the call if this process dies; used with `checkpointNanos` only. Default: a
   * record without details, marked as lost.
   */
  readonly record?: CallRow;
}

/** The result of an extension. */
export interface ExtendVerdict {
  /**
   * The amount of the hold now: at least `amountNanos` if all was granted, less if the balance or
   * the key's limit allowed only a part. 0 where the hold has ended.
   */
  readonly heldNanos: bigint;
  /** The hold had ended, or never existed: nothing changed. */
  readonly closed?: true;
}

/** The end of a hold: charges `costNanos` (0 releases it whole) and writes the call's record. */
export interface SettleOperation {
  /** The id of the hold. */
  readonly id: string;
  readonly accountId: string;
  /**
   * The cost of the call, 0 or more. It may exceed the hold: the rest is taken from the available
   * balance, and a shortfall beyond that is the platform's loss.
   */
  readonly costNanos: bigint;
  /**
   * The call's record, written in the same transaction; its cost is `costNanos`. Its `vendor_cost`
   * is booked with the charge.
   */
  readonly record: CallRow;
}

/** The ledger for calls: operations join the next batch of their account. */
export interface Ledger {
  /**
   * Reserves money.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE if the database does not answer within {@link
   * LedgerTimings.holdWaitMs}. A hold that was placed all the same is released automatically.
   */
  hold(operation: HoldOperation): Promise<HoldVerdict>;
  /**
   * Extends a hold, writes its checkpoint, or both. Pending while the database is unreachable, and
   * re-sent until it is answered. A later extension of the same hold merges into a pending one, and
   * both get the same answer.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE once the ledger is closed.
   */
  extend(operation: ExtendOperation): Promise<ExtendVerdict>;
  /** Ends a hold. Resolves when it is durable; re-sent until it is. Exactly once by its id. */
  settle(operation: SettleOperation): Promise<void>;
  /** Records a call that was refused before a hold; cost 0. Batched, bounded, best effort. */
  record(row: CallRow): void;
}

/** Timings of the ledger. The defaults are in limits.ts; tests shorten them. */
export interface LedgerTimings {
  /** Interval of heartbeats. Default 5,000. */
  readonly heartbeatMs: number;
  /** A process without a heartbeat for this long is declared dead. Default 20,000. */
  readonly silentMs: number;
  /** Lifetime of a hold that is not renewed. Default 900,000. */
  readonly holdTtlMs: number;
  /** Interval of renewals of running calls' holds. Default 60,000. */
  readonly renewMs: number;
  /** Interval of recovery: holds of dead processes and expired ones are ended. Default 5,000. */
  readonly recoveryMs: number;
  /** Maximum wait of a hold for the database before its caller gets a 503. Default 900. */
  readonly holdWaitMs: number;
}

/**
 * Options of {@link createLedger}. Tests that are not about time lengthen `holdWaitMs`, for they
 * run on busy machines.
 */
export interface LedgerOptions extends Partial<LedgerTimings> {
  /** The database. Contains a password: never logged. */
  readonly url: DatabaseAddress;
  /** Number of the ledger's connections. Default `ledgerConnections`. */
  readonly connections?: number;
  /** Logs warnings for operators, without secrets. Default: no log. */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /**
   * The journal for settlements while the database is unreachable. Default: none; they then wait in
   * memory.
   */
  readonly journal?: LedgerJournal;
  /** Logs alarms for operators, without secrets. Default: `warn`. */
  readonly alarm?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Called when a batch has taken an account below its threshold. Default: no callback. */
  readonly onLowBalance?: (accountId: string, balanceNanos: bigint) => void;
  /**
   * Called when calls have cost more than their account could pay: the platform's loss. Default: no
   * callback.
   */
  readonly onLoss?: (accountId: string, lossNanos: bigint) => void;
  /**
   * Called with each point that an operation passes; tests kill the process there. Default: no
   * callback.
   */
  readonly failpoint?: Failpoint;
}

/** The journal of a ledger. */
export interface LedgerJournal {
  readonly folder: string;
  /**
   * Its files. Default: a new one to write, and all that are there to replay, since one process
   * owns the folder.
   */
  readonly names?: JournalNames | undefined;
  /** The most pending settlements. Default `journalEntriesMax`; tests lower it. */
  readonly entriesMax?: number;
}

/** Counts of the ledger of this process. */
export interface LedgerStats {
  /** Holds of running calls. */
  readonly openHolds: number;
  /** Holds without an answer yet. */
  readonly pendingHolds: number;
  /** Extensions without an answer yet. */
  readonly pendingExtends: number;
  /** Settlements that are not in the database yet. The number grows while it is unreachable. */
  readonly pendingSettles: number;
  /**
   * Settlements in the journal, of this process and of dead ones, that the database does not have
   * yet.
   */
  readonly journalEntries: number;
  /** Bytes of this process's journal. */
  readonly journalBytes: number;
  /** Writes to the journal that failed, in all. */
  readonly journalFailures: number;
  /** Records of refused calls that are not written yet, which is best effort. */
  readonly pendingRecords: number;
  /** Records of refused calls that were lost, in all. */
  readonly droppedRecords: number;
  /** Batches that were sent again, in all. */
  readonly resends: number;
  /** Holds that were answered with 503, in all. */
  readonly abandonedHolds: number;
  /** Settlements of holds that never existed, in all: each is a fault of this program. */
  readonly unknownSettles: number;
  /** Settlements that the database refused as invalid, in all: each is a fault of this program. */
  readonly refusedSettles: number;
}

/** The timings of limits.ts, with those that are given in their place. */
export function ledgerTimings(given: Partial<LedgerTimings>): LedgerTimings {
  return {
    heartbeatMs: given.heartbeatMs ?? nodeHeartbeatMs,
    silentMs: given.silentMs ?? nodeSilentMs,
    holdTtlMs: given.holdTtlMs ?? holdTtlMs,
    renewMs: given.renewMs ?? holdRenewMs,
    recoveryMs: given.recoveryMs ?? holdRecoveryMs,
    holdWaitMs: given.holdWaitMs ?? holdWaitMs,
  };
}

/**
 * 503 while the ledger cannot work: nothing was charged, and a retry may succeed. @param reason
 * begins the message
 */
export function unavailable(reason: string): GatewayError {
  return new GatewayError(
    ErrorCode.SERVICE_UNAVAILABLE,
    `${reason}; nothing was charged, try again in a moment`,
    { retryAfterSeconds: 1 },
  );
}
