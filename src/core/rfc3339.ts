/** Parses dates and times that people write. */

const form =
  /^(\d{4}-\d{2}-\d{2})(?:[Tt](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})))?$/;

/**
 * Parses an RFC 3339 date (midnight in UTC), or date and time with an offset. Seconds may be
 * absent.
 *
 * @returns whole milliseconds since 1970; undefined if it is neither
 */
export function parseRfc3339(text: string): number | undefined {
  const [, date = "", time = "00:00:00Z"] = form.exec(text) ?? [];
  const midnight = new Date(`${date}T00:00:00Z`);
  // February 30 would be read as March 2.
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date);
  const timeMs = isDay ? Date.parse(`${date}T${time.toUpperCase()}`) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}
