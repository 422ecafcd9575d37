/** Where the hours, days, weeks and months of a time zone begin. Pure. */
import { UsageBucket } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { bucketsMax } from "../../core/limits.ts";
import { invalid } from "../../core/validation.ts";

/** An hour. */
export const hourMs = 3_600_000;

const dayMs = 24 * hourMs;

/** A range of time in buckets. */
export interface BucketRange {
  /** Milliseconds since 1970: the beginning, inclusive. */
  readonly fromMs: number;
  /** Milliseconds since 1970: the end, exclusive. */
  readonly toMs: number;
  /** Default: a day. */
  readonly bucket: UsageBucket;
  /** An IANA name. */
  readonly timeZone: string;
}

/**
 * The form of names in the IANA database. `Intl` also takes offsets such as `+08:00`, which have no
 * calendar rules.
 */
const zoneForm = /^[A-Za-z]\w*(?:[/+-]\w+)*$/;

/**
 * Checks a time zone, and spells its letters as the database does; empty: UTC. An alias stays one:
 * `Intl` would make Asia/Katmandu of Asia/Kathmandu. @throws GatewayError INVALID_REQUEST
 */
export function parseTimeZone(name: string): string {
  if (name === "") return "UTC";
  try {
    if (zoneForm.test(name)) {
      const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
      return timeZone.toLowerCase() === name.toLowerCase() ? timeZone : name;
    }
  } catch {
    // Reported below.
  }
  throw invalid(
    "time_zone",
    "time_zone must be a name of the IANA time zone database, for example Asia/Shanghai or UTC",
  );
}

/**
 * The start of each bucket of the range, in milliseconds since 1970. The first one begins at
 * `fromMs` or before.
 *
 * @throws GatewayError INVALID_REQUEST if there are more than {@link bucketsMax}
 */
export function bucketStarts(range: BucketRange): number[] {
  const starts: number[] = [];
  for (const startMs of startsOf(range)) {
    if (startMs >= range.toMs && starts.length > 0) return starts;
    if (starts.length === bucketsMax) {
      throw invalid("bucket", `the range has more than ${bucketsMax} buckets: request larger ones`);
    }
    starts.push(startMs);
  }
  return starts;
}

function startsOf(range: BucketRange): Iterable<number> {
  return range.bucket === UsageBucket.HOUR ? hours(range) : dates(range);
}

function* hours({ fromMs }: BucketRange): Generator<number> {
  for (let startMs = Math.floor(fromMs / hourMs) * hourMs; ; startMs += hourMs) yield startMs;
}

/** By the calendar: days are not all of the same length, and some do not begin at midnight. */
function* dates({ fromMs, bucket, timeZone }: BucketRange): Generator<number> {
  const offsetAt = createOffsets(timeZone);
  const first = firstDate(new Date(fromMs + offsetAt(fromMs)), bucket);
  for (let count = 0; ; count++) yield startOfDate(step(first, bucket, count), offsetAt);
}

/** The date on which the bucket of a date begins. Dates are midnights in UTC. */
function firstDate(date: Date, bucket: UsageBucket): Date {
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  // Weeks begin on Monday.
  if (bucket === UsageBucket.WEEK) {
    return new Date(Date.UTC(year, month, day - ((date.getUTCDay() + 6) % 7)));
  }
  return new Date(Date.UTC(year, month, bucket === UsageBucket.MONTH ? 1 : day));
}

function step(first: Date, bucket: UsageBucket, count: number): number {
  const [year, month, day] = [first.getUTCFullYear(), first.getUTCMonth(), first.getUTCDate()];
  if (bucket === UsageBucket.MONTH) return Date.UTC(year, month + count, day);
  return Date.UTC(year, month, day + count * (bucket === UsageBucket.WEEK ? 7 : 1));
}

/**
 * The first moment of a date. If clocks are put forward at midnight, that is the moment of the
 * change.
 */
function startOfDate(midnight: number, offsetAt: (timeMs: number) => number): number {
  const before = midnight - offsetAt(midnight - dayMs);
  const after = midnight - offsetAt(midnight + dayMs);
  const starts = [before, after].filter((startMs) => startMs + offsetAt(startMs) === midnight);
  return starts.length > 0 ? Math.min(...starts) : before;
}

/**
 * Returns a function for the offset of a time zone at a moment, in milliseconds. `Temporal` would
 * do all this, but Node.js 24 does not have it.
 */
function createOffsets(timeZone: string): (timeMs: number) => number {
  const format = new Intl.DateTimeFormat("en", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return (timeMs) => {
    const parts = format.formatToParts(timeMs);
    const read = (type: string): number => Number(parts.find((part) => part.type === type)?.value);
    const date = Date.UTC(read("year"), read("month") - 1, read("day"));
    const seconds = (read("hour") * 60 + read("minute")) * 60 + read("second");
    return date + seconds * 1_000 - Math.floor(timeMs / 1_000) * 1_000;
  };
}
