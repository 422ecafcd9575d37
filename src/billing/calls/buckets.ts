/** Where the hours, days, weeks and months of a time zone begin. Pure. */
import { UsageBucket } from "../../../gen/uas/billing/v1/usage_pb.ts";
import { bucketsMax } from "../../core/limits.ts";
import { invalid } from "../../core/validation.ts";

/** An hour. */
export const hourMs = 3_600_000;

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

/** The form of names in the IANA database. `Intl` also takes offsets such as `+08:00`, which have no calendar rules. */
const zoneForm = /^[A-Za-z]\w*(?:[/+-]\w+)*$/;

/** Checks a time zone, and spells its letters as the database does; empty: UTC. An alias stays one: `Intl` would make
 * Asia/Katmandu of Asia/Kathmandu. @throws GatewayError INVALID_REQUEST */
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
  const day = Temporal.Instant.fromEpochMilliseconds(fromMs)
    .toZonedDateTimeISO(timeZone)
    .toPlainDate();
  const first = firstDate(day, bucket);
  for (let count = 0; ; count++) {
    yield first.add(step(bucket, count)).toZonedDateTime(timeZone).epochMilliseconds;
  }
}

function firstDate(day: Temporal.PlainDate, bucket: UsageBucket): Temporal.PlainDate {
  if (bucket === UsageBucket.WEEK) return day.subtract({ days: day.dayOfWeek - 1 });
  return bucket === UsageBucket.MONTH ? day.with({ day: 1 }) : day;
}

function step(bucket: UsageBucket, count: number): Temporal.DurationLike {
  if (bucket === UsageBucket.WEEK) return { weeks: count };
  return bucket === UsageBucket.MONTH ? { months: count } : { days: count };
}
