/** Reads single values of a configuration: words, texts, numbers, durations, prices, addresses, secrets. */
import { parseUsd } from "../core/money.ts";
import { type Entry, type Reader, report, scalarText } from "./reader.ts";
import { type Resolved, resolveSecret, resolveText } from "./references.ts";
import { hint } from "./suggest.ts";

/** The largest whole number of the contract. */
export const int32Max = 2_147_483_647;

/** One of a closed list of words. */
export function word(reader: Reader, entry: Entry, words: readonly string[]): string | undefined {
  const written = scalarText(reader, entry, `one of ${words.join(", ")}`);
  if (written === undefined || words.includes(written)) return written;
  report(reader, entry, `${shown(written)} is not known${hint(written, words)}`);
  return undefined;
}

/** Any text of 1 to `charsMax` characters; `${env:NAME}` is replaced. */
export function text(reader: Reader, entry: Entry, charsMax: number): string | undefined {
  const raw = scalarText(reader, entry, "a text");
  const found =
    raw === undefined ? undefined : taken(reader, entry, resolveText(raw, reader.references));
  if (found === undefined) return undefined;
  // oxlint-disable-next-line no-control-regex
  if (found.length <= charsMax && !/[\u0000-\u001f\u007f]/.test(found)) return found;
  report(reader, entry, `must be one line of at most ${charsMax} characters`);
  return undefined;
}

/** A credential: `${env:NAME}` or `${file:/path}`, nothing else. */
export function secret(reader: Reader, entry: Entry): string | undefined {
  const raw = scalarText(reader, entry, 'a reference such as "${env:NAME}"');
  return raw === undefined
    ? undefined
    : taken(reader, entry, resolveSecret(raw, reader.references));
}

function taken(reader: Reader, entry: Entry, resolved: Resolved): string | undefined {
  if ("text" in resolved) return resolved.text;
  report(reader, entry, resolved.problem);
  return undefined;
}

/** `true` or `false`. */
export function flag(reader: Reader, entry: Entry): boolean | undefined {
  const written = word(reader, entry, ["true", "false"]);
  return written === undefined ? undefined : written === "true";
}

/** A whole number from 1 to {@link int32Max}. */
export function positive(reader: Reader, entry: Entry): number | undefined {
  const what = `a whole number from 1 to ${int32Max}`;
  const raw = scalarText(reader, entry, what);
  if (raw === undefined) return undefined;
  const value = /^\d{1,10}$/.test(raw) ? Number(raw) : 0;
  if (value >= 1 && value <= int32Max) return value;
  report(reader, entry, `must be ${what}, without quotes, sign or point`);
  return undefined;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** The longest duration: a day, well inside of what a timer can count. */
const durationMsMax = 86_400_000;

/** A duration such as `500ms`, `5s`, `2m`, in milliseconds. */
export function durationMs(reader: Reader, entry: Entry): number | undefined {
  const what = "a whole number with its unit: 500ms, 5s, 2m or 1h; more than 0, at most 24h";
  const raw = scalarText(reader, entry, what);
  if (raw === undefined) return undefined;
  const match = /^(\d{1,8})(ms|s|m|h)$/.exec(raw);
  const value = match ? Number(match[1]) * (unitMs[match[2] ?? ""] ?? 0) : 0;
  if (value >= 1 && value <= durationMsMax) return value;
  report(reader, entry, `must be ${what}`);
  return undefined;
}

/** A price in USD, quoted or not, as nano-USD: exact, as it is read from the text. */
export function usd(reader: Reader, entry: Entry): bigint | undefined {
  const raw = scalarText(reader, entry, 'a price such as "0.25"');
  const nanos = raw === undefined ? undefined : parseUsd(raw);
  if (raw !== undefined && nanos === undefined) {
    report(
      reader,
      entry,
      `${shown(raw)} is no price: write US dollars as a decimal number such as "0.25", at most 9 digits after the point, without sign or exponent`,
    );
  }
  return nanos;
}

const dateForm =
  /^(\d{4}-\d{2}-\d{2})(?:[Tt](\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})))?$/;

/**
 * A moment: an RFC 3339 date, which is its midnight in UTC, or date and time with an offset.
 *
 * @returns milliseconds since 1970
 */
export function moment(reader: Reader, entry: Entry): number | undefined {
  const what =
    'a date such as 2026-07-01 (midnight in UTC) or a time such as "2026-07-01T09:00:00Z"';
  const raw = scalarText(reader, entry, what);
  if (raw === undefined) return undefined;
  const [, date = "", time = "00:00:00Z"] = dateForm.exec(raw) ?? [];
  const midnight = new Date(`${date}T00:00:00Z`);
  // February 30 would be read as March 2.
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date);
  const ms = isDay ? Date.parse(`${date}T${time.toUpperCase()}`) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  report(reader, entry, `${shown(raw)} is no moment: write ${what}`);
  return undefined;
}

/**
 * An http or https address, without its trailing slash. Its text is never repeated in problems: it may
 * hold a password.
 */
export function baseUrl(reader: Reader, entry: Entry): string | undefined {
  const found = text(reader, entry, 2_000);
  if (found === undefined) return undefined;
  const { placeholder } = reader.references;
  const written =
    placeholder !== undefined && found.startsWith(placeholder) ? `http://${found}` : found;
  const problem = urlProblem(written);
  if (problem === undefined) return new URL(written).href.replace(/\/+$/, "");
  report(reader, entry, problem);
  return undefined;
}

function urlProblem(written: string): string | undefined {
  const url = URL.parse(written);
  if (url === null || !/^https?:\/\//i.test(written)) {
    return "must be an address such as https://api.example.com/v1";
  }
  if (url.username !== "" || url.password !== "") {
    return "must not hold a user or password: put the credential into api_key";
  }
  if (/[?#]/.test(written)) return "must not hold a query or fragment: remove what follows ? or #";
  return undefined;
}

/** A text of the file in a message: cut and escaped. */
export function shown(value: string): string {
  return JSON.stringify(value.length <= 60 ? value : `${value.slice(0, 60)}…`);
}
