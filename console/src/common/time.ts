/** Times and time zones: shown without ambiguity, in one named zone. */
import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";

/** The zone of this browser, an IANA name. */
export function localZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** The milliseconds of a timestamp since 1970. */
export function msOf(time: Timestamp): number {
  return timestampDate(time).getTime();
}

/** The timestamp of a moment in milliseconds since 1970. */
export function timestampOf(ms: number): Timestamp {
  return timestampFromDate(new Date(ms));
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}

/**
 * `2026-11-21 03:24:45`.
 *
 * @param zone the browser's by default
 */
export function timeText(ms: number, zone?: string): string {
  const format = new Intl.DateTimeFormat("sv-SE", {
    dateStyle: "short",
    timeStyle: "medium",
    ...(zone !== undefined && { timeZone: zone }),
  });
  return format.format(ms);
}

/** `2026-11-21` in the browser's zone. */
export function dayText(ms: number): string {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Time by which a zone is ahead of UTC at a moment. */
function offsetMs(zone: string, ms: number): number {
  const shown = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" })
    .formatToParts(ms)
    .find(({ type }) => type === "timeZoneName")?.value;
  const [, sign = "+", hours = "0", minutes = "0", seconds = "0"] =
    /GMT([+-])(\d{2}):(\d{2})(?::(\d{2}))?/.exec(shown ?? "") ?? [];
  const size = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds);
  return (sign === "-" ? -size : size) * 1_000;
}

/** `+08:00`: the offset of a zone from UTC at a moment. */
function offsetText(ms: number, zone: string | undefined): string {
  const minutes =
    zone === undefined
      ? -new Date(ms).getTimezoneOffset()
      : Math.trunc(offsetMs(zone, ms) / 60_000);
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/**
 * `2026-11-21 03:24:45 +08:00`.
 *
 * @param zone the browser's by default
 */
export function exactTimeText(ms: number, zone?: string): string {
  return `${timeText(ms, zone)} ${offsetText(ms, zone)}`;
}

const units: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

/** `2 minutes ago`, in a language. */
export function relativeText(
  ms: number,
  { now, language }: { now: number; language: string },
): string {
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const away = ms - now;
  const [unit, size] = units.find(([, each]) => Math.abs(away) >= each) ?? ["second", 1_000];
  return format.format(Math.round(away / size), unit);
}

const periods: readonly (readonly [string, number])[] = [
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
  ["ms", 1],
];

/** A configured duration: `24 h`, `1 h 30 min`, `500 ms`. */
export function periodText(ms: number): string {
  let rest = ms;
  const parts: string[] = [];
  for (const [unit, size] of periods) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.join(" ");
}

/** A measured duration: `842 ms`, `1.24 s`, `3 min 05 s`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
}

/** All zones of the browser, by their IANA names. */
export function allZones(): readonly string[] {
  return Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC");
}

/** The browser's name of a zone; undefined if it has no such zone. */
export function zoneOf(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: value }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

/**
 * A day, `2026-11-21`, or a minute of it, `2026-11-21T03:24`, as in addresses.
 *
 * @returns `undefined` if it is neither, or there is no such day
 */
export function wallTime(value: unknown): string | undefined {
  if (typeof value !== "string" || !/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2})?$/.test(value)) {
    return undefined;
  }
  const ms = Date.parse(`${value.padEnd(16, "T00:00")}Z`);
  if (Number.isNaN(ms)) return undefined;
  return new Date(ms).toISOString().startsWith(value) ? value : undefined;
}

/** The moment when clocks of a zone show a time; the first one if they show it twice. */
export function momentIn(zone: string, wall: string): number {
  const asUtc = Date.parse(`${wall.padEnd(16, "T00:00")}Z`);
  // A day is longer than any offset: one of the offsets before and after a clock change is the
  // right one.
  const offsets = [asUtc - dayMs, asUtc + dayMs].map((ms) => offsetMs(zone, ms));
  const right = offsets.find((offset) => offsetMs(zone, asUtc - offset) === offset);
  return asUtc - (right ?? offsets[0] ?? 0);
}

/** The local time in a zone at a moment: `2026-11-21T03:24`. */
export function wallIn(zone: string, ms: number): string {
  return new Date(ms + offsetMs(zone, ms)).toISOString().slice(0, 16);
}

/** The day before or after: `2026-11-22` after `2026-11-21`. */
export function dayAfter(day: string, count = 1): string {
  return new Date(Date.parse(day) + count * dayMs).toISOString().slice(0, 10);
}

const dayMs = 86_400_000;
