/** Parses common members of requests about past calls: ranges of time and limits. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { hourMs } from "./buckets.ts";
import { invalid } from "../../core/validation.ts";

/** A range of time, in milliseconds since 1970. */
export interface Range {
  /** Inclusive. */
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
}

/**
 * Reads a range of time; without an end it ends now.
 *
 * @throws GatewayError INVALID_REQUEST if it has no beginning, or ends before it
 */
export function parseRange(
  request: { readonly fromTime?: Timestamp | undefined; readonly toTime?: Timestamp | undefined },
  nowMs: number,
): Range {
  const { fromTime, toTime } = request;
  if (fromTime === undefined) throw invalid("from_time", "from_time is required");
  const fromMs = momentOf(fromTime);
  const toMs = toTime ? momentOf(toTime) : nowMs;
  if (fromMs >= toMs) throw invalid("to_time", "to_time must be later than from_time");
  return { fromMs, toMs };
}

/** A timestamp with the precision of ids: whole milliseconds, not before 1970. */
export function momentOf(time: Timestamp): number {
  return Math.max(0, timestampMs(time));
}

/**
 * The end of a range for hourly sums: no call is younger than now, so the current hour can be taken
 * whole.
 */
export function summedUntilMs(toMs: number, nowMs: number): number {
  return toMs >= nowMs ? Math.ceil(toMs / hourMs) * hourMs : toMs;
}

/** A limit: 0 means `usual`, and `most` caps it. */
export function limitOf(
  limit: number,
  { usual, most }: { readonly usual: number; readonly most: number },
): number {
  return limit === 0 ? usual : Math.min(limit, most);
}
