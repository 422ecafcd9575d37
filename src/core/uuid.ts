/** UUIDs as ids. */
import { randomUUIDv7 } from "node:crypto";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether a text is a UUID as ours are written: lower case, with dashes. PostgreSQL takes other forms
 * too, and fails on the rest: check before asking it, so that a malformed id is "not found".
 */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/**
 * Makes ids: UUIDv7, each greater than all that the same source has made before, so that rows ordered by id stand in
 * the order they came. Node's own orders those of one millisecond by chance, and a fast machine makes several.
 *
 * Behind the time stand 12 bits that count within a millisecond, and 62 of chance. The library `uuid` does the same
 * and takes 3 µs more for each id, which every request would pay twice.
 */
export function idSource(make: () => string = randomUUIDv7): () => string {
  let time = 0;
  let count = 0;
  return () => {
    const fresh = make();
    const now = Number.parseInt(fresh.slice(0, 8) + fresh.slice(9, 13), 16);
    if (now > time) {
      time = now;
      count = 0;
    } else if (++count > countMax) {
      // More than any machine makes, or a clock that was set back: the next millisecond is taken in advance.
      time++;
      count = 0;
    }
    const stamp = time.toString(16).padStart(12, "0");
    const counted = count.toString(16).padStart(3, "0");
    return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${counted}-${fresh.slice(19)}`;
  };
}

/** The most that 12 bits count. */
const countMax = 0xfff;

/** A new id, greater than all that this process has made before. The one place that remembers: an order among ids
 * needs one source. */
export const newId: () => string = idSource();
