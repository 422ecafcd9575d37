import { create } from "@bufbuild/protobuf";
import { MoneySchema, type Money } from "../../gen/uas/type/v1/money_pb.ts";

/** Money as one integer: nano-USD in a bigint. 1,000,000,000 is one US dollar. */

/** Nano-USD in one US dollar. */
export const nanosPerUsd = 1_000_000_000n;

/** The largest amount that fits the database's bigint column: about 9.2 billion USD. */
export const amountNanosMax = 9_223_372_036_854_775_807n;

const decimal = /^(\d{1,10})(?:\.(\d{1,9}))?$/;

/**
 * Reads a decimal USD string such as `"0.25"`: up to ten digits before and nine after the point, no
 * sign, no exponent.
 *
 * @returns nano-USD, or undefined if the text is not such a number or exceeds the column.
 */
export function parseUsd(text: string): bigint | undefined {
  const match = decimal.exec(text);
  if (!match) return undefined;
  const nanos = BigInt(match[1] ?? "") * nanosPerUsd + BigInt((match[2] ?? "").padEnd(9, "0"));
  return nanos <= amountNanosMax ? nanos : undefined;
}

/**
 * Writes nano-USD as the shortest exact decimal string: `250000000n` is `"0.25"`, `0n` is `"0"`.
 */
export function formatUsd(nanos: bigint): string {
  return formatDecimal(nanos, 9);
}

/**
 * Writes `value` × 10^-`places` as the shortest exact decimal string: `1500n` with 3 places is
 * `"1.5"`.
 */
export function formatDecimal(value: bigint, places: number): string {
  const sign = value < 0n ? "-" : "";
  const digits = (value < 0n ? -value : value).toString().padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -places)}${fraction && `.${fraction}`}`;
}

/** The only currency of this version. */
export const currency = "USD";

/** Converts nano-USD to a Money message. */
export function money(amountNanos: bigint): Money {
  return create(MoneySchema, { currencyCode: currency, amountNanos });
}
