/** The doors to the money: hold, settle, release. Implemented by ledger-writer.ts. */
import type { CallRow } from "./call-row.ts";

/** Money to set aside before a vendor is asked. */
export interface HoldOperation {
  /** A fresh UUIDv7: the id of the call, its hold and its charge. */
  readonly id: string;
  readonly accountId: string;
  /** More than or equal to zero. */
  readonly amountNanos: bigint;
}

/** What came of a hold. */
export type HoldVerdict =
  | { readonly admitted: true }
  /** The balance does not cover it; nothing was set aside. */
  | {
      readonly admitted: false;
      readonly availableNanos: bigint;
      /** The hold of this id has been ended already: it cannot be made again. Only a repetition sees it. */
      readonly closed?: true;
    };

/** The end of a hold: charges `costNanos` (0 releases it whole) and writes the call's record. */
export interface SettleOperation {
  /** The id of the hold. */
  readonly id: string;
  readonly accountId: string;
  /** What the call costs, 0 or more. May exceed the hold: the rest comes from what is available, and
   * what even that does not cover is the platform's loss. */
  readonly costNanos: bigint;
  /** The call's record, written in the same transaction; its cost is `costNanos`. */
  readonly record: CallRow;
}

/** The hot door: operations join the next batch of their account. */
export interface Ledger {
  /**
   * Sets money aside.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE where the database does not answer within
   * {@link holdWaitMs}; a hold that turns out to have been made then is released by itself.
   */
  hold(operation: HoldOperation): Promise<HoldVerdict>;
  /** Ends a hold. Resolves when it is durable; re-sent until it is. Exactly once by its id. */
  settle(operation: SettleOperation): Promise<void>;
  /** Records a call that was refused before a hold; cost 0. Batched, bounded, best effort. */
  record(row: CallRow): void;
}
