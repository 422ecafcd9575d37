/** Generates and checks UUIDs. */
import { randomUUIDv7 } from "node:crypto";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether a text is a UUID in our spelling: lower case, with dashes. PostgreSQL accepts other spellings and fails
 * on anything else, so check ids before using them: a malformed id is then "not found".
 */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/**
 * Creates a source of UUIDv7 ids that always increase, so that rows sorted by id are in order of creation. Node's
 * own UUIDv7 values are in random order within a millisecond, and a fast machine makes several.
 *
 * After the timestamp come 12 counter bits and 62 random bits. The library `uuid` does the same but takes 3 µs more
 * for each id, and every request makes two.
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
      // The counter overflowed or the clock was set back: use the next millisecond.
      time++;
      count = 0;
    }
    const stamp = time.toString(16).padStart(12, "0");
    const counted = count.toString(16).padStart(3, "0");
    return `${stamp.slice(0, 8)}-${stamp.slice(8)}-7${counted}-${fresh.slice(19)}`;
  };
}

/** The largest 12-bit counter. */
const countMax = 0xfff;

/**
 * Makes an id greater than all earlier ids of this process. Module state on purpose: an order needs a single
 * source.
 */
export const newId: () => string = idSource();

/** The Nil UUID of RFC 9562: no id is lower, so that a keyset scan begins after it. */
export const nilUuid = "00000000-0000-0000-0000-000000000000";

/** The Max UUID of RFC 9562: no id is higher, so that a newest-first page begins below it. */
export const maxUuid = "ffffffff-ffff-ffff-ffff-ffffffffffff";
