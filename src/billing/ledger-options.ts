/** What a ledger needs to be opened, and what it tells of itself. */
import type { JournalOptions } from "./journal.ts";
import type { LedgerTimings } from "./ledger.ts";
import type { At } from "./points.ts";

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
