/** Reads when something is to happen, or has: a time, or how long from now. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";

const durationForm = /^([1-9]\d{0,5})([mhdw])$/;

const unitMs: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 24 * 3_600_000,
  w: 7 * 24 * 3_600_000,
};

const dateForm = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Reads `30d`, `12h`, `2027-01-31` (its first moment in UTC) or `2027-01-31T09:00:00+01:00`.
 *
 * @param nowMs from when a length of time counts. Default: now
 */
export function whenArgument(text: string, nowMs: number = Date.now()): Timestamp {
  return timestampFromMs(durationEnd(text, nowMs) ?? moment(text));
}

/**
 * Reads when something was: `30d`, `12h` (ago), or a time as {@link whenArgument} does.
 *
 * @param nowMs from when a length of time counts back. Default: now
 */
export function pastArgument(text: string, nowMs: number = Date.now()): Timestamp {
  const endMs = durationEnd(text, 0);
  return timestampFromMs(endMs === undefined ? moment(text) : nowMs - endMs);
}

function durationEnd(text: string, nowMs: number): number | undefined {
  const [, count, unit = ""] = durationForm.exec(text) ?? [];
  return count === undefined ? undefined : nowMs + Number(count) * (unitMs[unit] ?? Number.NaN);
}

/** A time must say its offset: without one it would mean another moment on each machine. */
function moment(text: string): number {
  try {
    const instant = dateForm.test(text) ? `${text}T00:00:00Z` : text;
    return Temporal.Instant.from(instant).epochMilliseconds;
  } catch {
    throw new InvalidArgumentError(
      "Write a time such as 30d, 12h, 2027-01-31 (00:00 UTC) or 2027-01-31T09:00:00Z.",
    );
  }
}
