/** The time that rows are dated by and prices go by, as modules are given it. */
import { createContextKey } from "@connectrpc/connect";
import { newId } from "./uuid.ts";

/**
 * Tells the time. In a gateway it is the machine's clock, which `ClockCheck` compares with the database's: all processes date
 * rows, charge prices and let things expire by the same time. Tests pass a clock of their own.
 */
export interface Clock {
  /** Whole milliseconds since 1970. */
  readonly now: () => number;
  /** Makes a UUIDv7 that begins with this time, and is greater than all earlier ids of this clock. */
  readonly newId: () => string;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now(), newId };

/** The clock of the process that serves an RPC, set by an interceptor. Default: the process's own. */
export const clockKey = createContextKey<Clock>(systemClock, { description: "clock" });
