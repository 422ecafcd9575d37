/** The progress of a delivery. */
import type { HoldMonitor } from "./hold-monitor.ts";

/** The progress of a delivery, for the settlement. */
export interface Delivery {
  /** Whether the client has the whole reply. */
  isDone: boolean;
  /** Whether a complete reply is withheld because it cannot be paid for: nothing is charged. */
  isWithheld: boolean;
  /** Whether the reply reports the cost: it is final. */
  isCostReported: boolean;
  /** The monitor of a stream; undefined for whole replies. */
  monitor: HoldMonitor | undefined;
}

/** A delivery that has not begun. */
export function newDelivery(): Delivery {
  return { isDone: false, isWithheld: false, isCostReported: false, monitor: undefined };
}
