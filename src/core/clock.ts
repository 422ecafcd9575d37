/** The time that rows are dated by and prices go by, as modules are given it. */
import { createContextKey } from "@connectrpc/connect";
import { newId } from "./uuid.ts";

/**
 * Tells the time. In a gateway it agrees with the database's clock, also where the clock of the machine is wrong
 * (`CorrectedClock`): all processes date rows, charge prices and let things expire by the same time.
 *
 * The process's own `Date.now()` is right only for what others compare with a clock of their own, or what never leaves the
 * process: lines of the log, signatures that providers check, `Date` headers of vendors.
 */
export interface Clock {
  /** Whole milliseconds since 1970. */
  readonly now: () => number;
  /** Makes a UUIDv7 that begins with this time, and is greater than all earlier ids of this clock. */
  readonly newId: () => string;
}

/** The process's own clock, for what has no database. */
export const systemClock: Clock = { now: () => Date.now(), newId };

/** The clock of the process that serves an RPC, set by an interceptor. Default: the process's own. */
export const clockKey = createContextKey<Clock>(systemClock, { description: "clock" });
