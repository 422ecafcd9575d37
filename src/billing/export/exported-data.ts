/** The interface of data that is exported by day. */
import type { Queryable } from "../../db/pool/queryable.ts";

/** Rows and amounts of a day, in nano-USD. */
export interface DayTotals {
  rows: bigint;
  /** Costs of calls; or entries of customers' accounts. */
  sum: bigint;
  vendorSum: bigint;
}

/** A day that this process has leased. */
export interface LeasedDay {
  /** Such as `2026-11-28`, in UTC. */
  readonly day: string;
  readonly lease: string;
}

/** A kind of data that is exported by day. */
export interface ExportedData<Day extends LeasedDay = LeasedDay> {
  readonly name: "calls" | "ledger";
  /** Leases the oldest day that is to be exported; undefined if there is none. */
  claim(pool: Queryable, lease: string): Promise<Day | undefined>;
  /** Whether a day that was exported before is still complete. Default: never asked. */
  isUnchanged?(pool: Queryable, day: Day): Promise<boolean>;
  /** The lines of a day, in pieces; adds to `totals`. */
  lines(pool: Queryable, day: Day, totals: DayTotals): AsyncIterable<string>;
  /** Further members of the manifest, which the totals must match. @throws if they do not */
  manifest?(day: Day, totals: DayTotals): Readonly<Record<string, unknown>>;
  /** The last number of its ledger entries. Default: none. */
  lastSeq?(day: Day): string;
}

/** Duration of a lease, as SQL. A process that dies delays its day by it. */
export const leaseTime = "interval '5 minutes'";

/** Age from which a day of calls is compared once more: few calls take longer than a month. */
export const finalAge = "interval '35 days'";
