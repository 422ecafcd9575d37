/** The clock that dates rows and selects prices, as modules receive it. */
import { createContextKey } from "@connectrpc/connect";
import { newId } from "./uuid.ts";

/**
 * Returns the time. In a gateway it is the machine's clock, which `ClockCheck` compares with the
 * database's clock. All processes date rows, select prices and expire data by the same time. Tests
 * pass another clock.
 */
export interface Clock {
  /** Whole milliseconds since 1970. */
  readonly now: () => number;
  /**
   * Makes a UUIDv7 that begins with this time, and is greater than all earlier ids of this clock.
   */
  readonly newId: () => string;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now(), newId };

/**
 * The clock of the process that serves an RPC, set by an interceptor. The system clock by default.
 */
export const clockKey = createContextKey<Clock>(systemClock, { description: "clock" });
