/** Reads arguments, and writes the contract's values as the words of the command line. */
import type { DescEnum } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { type Money, MoneySchema } from "../../gen/uas/type/v1/money_pb.ts";
import { formatUsd, parseUsd } from "../money.ts";

/** Reads an amount such as `10.00`. */
export function usdArgument(text: string): Money {
  const amountNanos = parseUsd(text);
  if (amountNanos === undefined) {
    throw new InvalidArgumentError(
      "Write US dollars as a decimal number such as 10.00, at most 9 digits after the point.",
    );
  }
  return create(MoneySchema, { currencyCode: "USD", amountNanos });
}

/** Reads a whole number of at least 1. */
export function countArgument(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Write a whole number of at least 1.");
}

/** Reads a comma separated list. */
export function listArgument(text: string): readonly string[] {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  if (entries.length > 0) return entries;
  throw new InvalidArgumentError("Write names with commas between, such as a,b.");
}

/** Money as a decimal string; absent counts as zero. */
export function usdText(money: Money | undefined): string {
  return formatUsd(money?.amountNanos ?? 0n);
}

/** A time in ISO 8601, UTC; `null` where there is none. */
export function timeText(time: Timestamp | undefined): string | null {
  return time === undefined ? null : timestampDate(time).toISOString();
}

/** An enum's value as its lower-case word without the prefix; `null` for the unspecified one. */
export function enumWord(schema: DescEnum, value: number): string | null {
  if (value === 0) return null;
  const name = schema.value[value]?.name;
  // A newer server may know more values than this program.
  if (name === undefined) return `unknown_${value}`;
  return name.slice(schema.sharedPrefix?.length ?? 0).toLowerCase();
}

/** `null` where the contract has an empty text for "none". */
export function orNull(text: string): string | null {
  return text === "" ? null : text;
}
