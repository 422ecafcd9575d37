/** Parses arguments, and formats the contract's values in the words of the command line. */
import { create, type DescEnum } from "@bufbuild/protobuf";
import {
  durationMs,
  timestampDate,
  timestampFromMs,
  type Duration,
  type Timestamp,
} from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { MoneySchema, type Money } from "../../gen/uas/type/v1/money_pb.ts";
import { int32Max } from "../core/int32.ts";
import { ErrorCode } from "../core/errors.ts";
import { errorCodeOf, errorWords } from "../core/error-words.ts";
import { formatUsd, parseUsd } from "../core/money.ts";
import { parseRfc3339 } from "../core/rfc3339.ts";

/** Parses an amount such as `10.00`. */
export function usdArgument(text: string): Money {
  const amountNanos = parseUsd(text);
  if (amountNanos === undefined) {
    throw new InvalidArgumentError(
      "Write US dollars as a decimal number such as 10.00, at most 9 digits after the point.",
    );
  }
  return create(MoneySchema, { currencyCode: "USD", amountNanos });
}

/** Parses an amount such as `-10.00`; negative amounts deduct. */
export function signedUsdArgument(text: string): Money {
  const money = usdArgument(text.replace(/^[+-]/, ""));
  if (text.startsWith("-")) money.amountNanos = -money.amountNanos;
  return money;
}

/**
 * Parses `word` as `false`, anything else with `read`. Not as undefined, which Commander turns into
 * text.
 */
export function orWord<Value>(
  word: string,
  read: (text: string) => Value,
): (text: string) => Value | false {
  return (text) => (text === word ? false : read(text));
}

/** 100 % in basis points. */
const wholeBp = 10_000;

/** Parses a percentage such as `12.5` or `12.5%`, into basis points. */
export function percentArgument(text: string): number {
  const [, whole, fraction = ""] = /^(\d{1,3})(?:\.(\d{1,2}))?%?$/.exec(text) ?? [];
  const bp = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  if (bp <= wholeBp) return bp;
  throw new InvalidArgumentError(
    "Write a percentage from 0 to 100 such as 12.5, at most 2 digits after the point.",
  );
}

/** Formats basis points as a percentage without the sign: 1250 is `12.5`. */
export function percentText(bp: number): string {
  return String(bp / 100);
}

/** Parses a whole number from 1 to {@link int32Max}. */
export function countArgument(text: string): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= int32Max) return value;
  throw new InvalidArgumentError(`Write a whole number from 1 to ${int32Max}.`);
}

/** Parses a comma-separated list. */
export function listArgument(text: string): readonly string[] {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  if (entries.length > 0) return entries;
  throw new InvalidArgumentError("Write names with commas between, such as a,b.");
}

/** Money as a decimal string; absent means zero. */
export function usdText(money: Money | undefined): string {
  return formatUsd(money?.amountNanos ?? 0n);
}

/** A time in ISO 8601, UTC; `null` if there is none. */
export function timeText(time: Timestamp | undefined): string | null {
  return time === undefined ? null : timestampDate(time).toISOString();
}

/** The lower-case name of an enum value, without its prefix; `null` for the unspecified value. */
export function enumWord(schema: DescEnum, value: number): string | null {
  if (value === 0) return null;
  const name = schema.value[value]?.name;
  // A newer server may have values that are unknown here.
  if (name === undefined) return `unknown_${value}`;
  return name.slice(schema.sharedPrefix?.length ?? 0).toLowerCase();
}

/** `null` if the contract has an empty text for "none". */
export function orNull(text: string): string | null {
  return text === "" ? null : text;
}

const durationForm = /^([1-9]\d{0,5})([mhdw])$/;

const unitMs: Readonly<Record<string, number>> = {
  m: 60_000,
  h: 3_600_000,
  d: 24 * 3_600_000,
  w: 7 * 24 * 3_600_000,
};

/**
 * Parses `30d`, `12h`, `2027-01-31` (midnight UTC) or `2027-01-31T09:00:00+01:00`.
 *
 * @param nowMs start of relative times. Default: now
 */
export function whenArgument(text: string, nowMs: number = Date.now()): Timestamp {
  return timestampFromMs(durationEnd(text, nowMs) ?? moment(text));
}

/**
 * Parses a past time: `30d`, `12h` (ago), or a time as for {@link whenArgument}.
 *
 * @param nowMs end of relative times. Default: now
 */
export function pastArgument(text: string, nowMs: number = Date.now()): Timestamp {
  const endMs = durationEnd(text, 0);
  return timestampFromMs(endMs === undefined ? moment(text) : nowMs - endMs);
}

function durationEnd(text: string, nowMs: number): number | undefined {
  const [, count, unit = ""] = durationForm.exec(text) ?? [];
  return count === undefined ? undefined : nowMs + Number(count) * (unitMs[unit] ?? Number.NaN);
}

/** A time of day needs an offset: without one it would differ between machines. */
function moment(text: string): number {
  const timeMs = parseRfc3339(text);
  if (timeMs !== undefined) return timeMs;
  throw new InvalidArgumentError(
    "Write a time such as 30d, 12h, 2027-01-31 (00:00 UTC) or 2027-01-31T09:00:00Z.",
  );
}

/** A duration in milliseconds; 0 if there is none. */
export function millis(duration: Duration | undefined): number {
  return duration === undefined ? 0 : durationMs(duration);
}

/** Reads a documented error code such as `model_not_found`. */
export function errorArgument(word: string): ErrorCode {
  const code = errorCodeOf(word);
  if (code !== ErrorCode.UNSPECIFIED) return code;
  throw new InvalidArgumentError(`Write one of ${errorWords.join(", ")}.`);
}
