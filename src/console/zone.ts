/** Time zones: moments as clocks of a zone show them. */
import { offsetMs } from "./time.ts";

/** All zones that the browser knows, by their IANA names. */
export function allZones(): readonly string[] {
  return Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC");
}

/** A zone that the browser knows, in its own way of writing it; `undefined`: none. */
export function zoneOf(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: value }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

/**
 * A day, `2026-11-21`, or a minute of it, `2026-11-21T03:24`, as they stand in addresses.
 *
 * @returns `undefined` where it is neither, or there is no such day
 */
export function wallTime(value: unknown): string | undefined {
  if (typeof value !== "string" || !/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2})?$/.test(value)) {
    return undefined;
  }
  const ms = Date.parse(`${value.padEnd(16, "T00:00")}Z`);
  if (Number.isNaN(ms)) return undefined;
  return new Date(ms).toISOString().startsWith(value) ? value : undefined;
}

/** The moment when clocks of a zone show this; where they are set back, the first one. */
export function momentIn(zone: string, wall: string): number {
  const asUtc = Date.parse(`${wall.padEnd(16, "T00:00")}Z`);
  // A day off is more than any offset: of both sides of a change of the clocks, the one that is right stays.
  const offsets = [asUtc - dayMs, asUtc + dayMs].map((ms) => offsetMs(zone, ms));
  const right = offsets.find((offset) => offsetMs(zone, asUtc - offset) === offset);
  return asUtc - (right ?? offsets[0] ?? 0);
}

/** What clocks of a zone show at a moment: `2026-11-21T03:24`. */
export function wallIn(zone: string, ms: number): string {
  return new Date(ms + offsetMs(zone, ms)).toISOString().slice(0, 16);
}

/** The day before or after: `2026-11-22` after `2026-11-21`. */
export function dayAfter(day: string, count = 1): string {
  return new Date(Date.parse(day) + count * dayMs).toISOString().slice(0, 10);
}

const dayMs = 86_400_000;
