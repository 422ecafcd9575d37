/** Generates and checks UUIDs. */
import { randomBytes } from "node:crypto";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether a text is a UUID in the gateway's spelling: lower case, with dashes. PostgreSQL accepts
 * other spellings and fails on anything else, so check ids before using them: a malformed id is
 * then "not found".
 */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/**
 * Creates a source of UUIDv7 ids that always increase, so that rows sorted by id are in order of
 * creation. Node's UUIDv7 values are in random order within a millisecond, and a fast machine makes
 * several.
 *
 * 12 counter bits and 62 random bits follow the timestamp. Every request makes two ids, so their
 * common part is written once: the stamp each millisecond, random digits for many ids at a time.
 *
 * @param clock milliseconds since 1970. Default `Date.now`
 */
export function idSource(clock: () => number = Date.now): () => string {
  const random = randomTails();
  let time = 0;
  let stamp = "";
  let count = 0;
  return () => {
    const nowMs = clock();
    // The counter overflowed or the clock was set back: use the next millisecond.
    if (nowMs > time || count === countMax) {
      time = Math.max(nowMs, time + 1);
      stamp = stampOf(time);
      count = 0;
    } else count++;
    return stamp + counterTexts[count] + random();
  };
}

/** The largest 12-bit counter. */
const countMax = 0xfff;

const counterTexts = Array.from(
  { length: countMax + 1 },
  (_, count) => `${count.toString(16).padStart(3, "0")}-`,
);

/** A time in the first 48 bits, then the version. */
function stampOf(time: number): string {
  const text = time.toString(16).padStart(12, "0");
  return `${text.slice(0, 8)}-${text.slice(8)}-7`;
}

/** Number of ids whose random bytes are generated at once. */
const tailsAtOnce = 256;

const tailBytes = 8;

/**
 * Creates a source of variant and random bits: `8xxx-xxxxxxxxxxxx`, the first digit from 8 to b.
 */
function randomTails(): () => string {
  let digits = "";
  let at = 0;
  return () => {
    if (at === digits.length) {
      const bytes = randomBytes(tailsAtOnce * tailBytes);
      for (let i = 0; i < bytes.length; i += tailBytes) bytes[i] = ((bytes[i] ?? 0) & 0x3f) | 0x80;
      digits = bytes.toString("hex");
      at = 0;
    }
    const tail = `${digits.slice(at, at + 4)}-${digits.slice(at + 4, at + 16)}`;
    at += 2 * tailBytes;
    return tail;
  };
}

/**
 * Makes an id greater than all earlier ids of this process. Module state on purpose: an order needs
 * a single source.
 */
export const newId: () => string = idSource();

/**
 * Makes an id that begins with a given time, such as the database's, and is greater than all
 * earlier ids of this function. Module state on purpose, as in {@link newId}.
 *
 * @param timeMs milliseconds since 1970
 */
export function newIdAt(timeMs: number): string {
  givenMs = timeMs;
  return newIdOfGiven();
}

let givenMs = 0;
const newIdOfGiven = idSource(() => givenMs);

/** The Nil UUID of RFC 9562: no id is lower, so that a keyset scan begins after it. */
export const nilUuid = "00000000-0000-0000-0000-000000000000";

/** The Max UUID of RFC 9562: no id is higher, so that a newest-first page begins below it. */
export const maxUuid = "ffffffff-ffff-ffff-ffff-ffffffffffff";
