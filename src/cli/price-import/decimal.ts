/** Exact numbers: decimals of price lists, without binary floating point. */
import { nanosPerUsd } from "../../core/money.ts";

/** A number that is not negative, as a fraction of integers. */
export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

const decimal = /^(-?)(\d{1,30})(?:\.(\d{1,30}))?(?:[eE]([+-]?\d{1,2}))?$/;

/**
 * Reads a decimal number as JSON writes it, also with an exponent: `0.25`, `1e-7`.
 *
 * @returns `"negative"` if it is less than zero, `undefined` if it is no such number
 */
export function parseDecimal(text: string): Fraction | "negative" | undefined {
  const match = decimal.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", digits = "", exponent = "0"] = match;
  const value = BigInt(whole + digits);
  if (sign === "-" && value > 0n) return "negative";
  const shift = Number(exponent) - digits.length;
  return shift >= 0
    ? { numerator: value * 10n ** BigInt(shift), denominator: 1n }
    : { numerator: value, denominator: 10n ** BigInt(-shift) };
}

/**
 * US dollars for `count` units as nano-USD for one, rounded up, and whether it had to be rounded.
 */
export function nanosEach(usd: Fraction, count: bigint): { nanos: bigint; isRounded: boolean } {
  const parts = usd.numerator * nanosPerUsd;
  const size = usd.denominator * count;
  return { nanos: divideUp(parts, size), isRounded: parts % size !== 0n };
}

/** The quotient of two numbers that are not negative, rounded up. */
export function divideUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor;
}

/** A margin in millionths of the cost, that is in ten thousandths of a percent. */
export type MarginPpm = bigint;

/** All of the cost, in millionths. */
const wholePpm = 1_000_000n;

/**
 * Reads a margin such as `20%` or `12.5`: at most four digits before and after the point, not
 * negative.
 */
export function parseMargin(text: string): MarginPpm | undefined {
  const match = /^(\d{1,4})(?:\.(\d{1,4}))?%?$/.exec(text);
  if (match === null) return undefined;
  return BigInt((match[1] ?? "") + (match[2] ?? "").padEnd(4, "0"));
}

/** A cost and its margin in nano-USD, rounded up: never below the cost. */
export function addMargin(costNanos: bigint, marginPpm: MarginPpm): bigint {
  return divideUp(costNanos * (wholePpm + marginPpm), wholePpm);
}
