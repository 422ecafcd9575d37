/** References of money that moves: what it is booked by, once. */
import { dayText } from "../time.ts";

/** A reference that nothing else has: `console-2026-11-21-1a2b3c4`. */
export function newReference(): string {
  // Browsers have `randomUUID` over HTTPS only.
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  return `console-${dayText(Date.now())}-${random.toString(36)}`;
}
