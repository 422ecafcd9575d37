/** Money as text. Amounts are integer nano-USD until they are shown. */
import type { Money } from "../../../gen/uas/type/v1/money_pb.ts";

const nanosPerUsd = 1_000_000_000n;

/** An amount in nano-USD; 0 if there is none. */
export function nanosOf(money: Money | undefined): bigint {
  return money?.amountNanos ?? 0n;
}

/** The message of an amount, for requests. */
export function moneyOf(nanos: bigint): { currencyCode: string; amountNanos: bigint } {
  return { currencyCode: "USD", amountNanos: nanos };
}

/**
 * An amount for a table: two decimals from one dollar on, below it four significant ones. The exact
 * amount is {@link exactUsd}. Truncated, not rounded: a balance is never shown higher than it is.
 */
export function usd(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos;
  const sign = nanos < 0n ? "−" : "";
  const whole = (size / nanosPerUsd).toLocaleString("en-US");
  const fraction = (size % nanosPerUsd).toString().padStart(9, "0");
  const significant = fraction.search(/[1-9]/);
  const decimals = size >= nanosPerUsd || significant < 0 ? 2 : Math.min(9, significant + 4);
  const shown = fraction.slice(0, decimals).replace(/0+$/, "").padEnd(2, "0");
  return `${sign}$${whole}.${shown}`;
}

/** An amount with all its decimals, as in fields and exports: `-12.50`. */
export function decimalUsd(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos;
  const fraction = (size % nanosPerUsd).toString().padStart(9, "0").replace(/0+$/, "");
  const sign = nanos < 0n ? "-" : "";
  return `${sign}${size / nanosPerUsd}.${fraction.padEnd(2, "0")}`;
}

/** An amount with all its decimals and its currency, as in tooltips: `-12.50 USD`. */
export function exactUsd(nanos: bigint): string {
  return `${decimalUsd(nanos)} USD`;
}

/** An amount with all its decimals, for reading: `$1,234.50`. */
export function longUsd(nanos: bigint): string {
  const [whole = "0", fraction = ""] = decimalUsd(nanos < 0n ? -nanos : nanos).split(".");
  return `${nanos < 0n ? "−" : ""}$${BigInt(whole).toLocaleString("en-US")}.${fraction}`;
}

/** An amount with its sign, for ledger entries. */
export function signedUsd(nanos: bigint): string {
  return nanos > 0n ? `+${usd(nanos)}` : usd(nanos);
}

/**
 * Parses a typed amount of USD.
 *
 * @returns undefined if the text is no amount, or finer than a nano-USD
 */
export function parseUsd(text: string): bigint | undefined {
  const found = /^\$?\s*(-?)(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text.trim().replaceAll(",", ""));
  if (found === null) return undefined;
  const [, sign = "", whole = "0", fraction = ""] = found;
  const nanos = BigInt(whole) * nanosPerUsd + BigInt(fraction.padEnd(9, "0"));
  return sign === "-" ? -nanos : nanos;
}

/** A decimal price of the contract as text: `$0.25`. Empty stays empty. */
export function priceText(price: string): string {
  return price === "" ? "" : `$${price.includes(".") ? price : `${price}.00`}`;
}
