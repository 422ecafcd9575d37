/** Reads values of other gateways' files, whose numbers may be written as text. */
import { parseDecimal } from "../price-import/decimal.ts";
import { objectOf, type JsonObject } from "../price-import/genai-prices.ts";

/** The value if it is text that is not blank. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

/** A decimal that is not negative, as text; undefined for anything else. */
export function decimalOf(value: unknown): string | undefined {
  const text = textOf(value);
  const parsed = text === undefined ? undefined : parseDecimal(text);
  return parsed === undefined || parsed === "negative" ? undefined : text;
}

/** A whole number from 1 on, such as a limit; undefined for anything else. */
export function countOf(value: unknown): number | undefined {
  const count = Number(textOf(value));
  return Number.isSafeInteger(count) && count >= 1 ? count : undefined;
}

/** The product of decimals and a power of ten, exact and in a form that price lists have. */
export function product(factors: readonly string[], powerOfTen = 0): string {
  const power = 10n ** BigInt(powerOfTen);
  let [numerator, digits] = [power, 0];
  for (const factor of factors) {
    const parsed = parseDecimal(factor);
    if (parsed === undefined || parsed === "negative") throw new RangeError("not a decimal");
    numerator *= parsed.numerator;
    digits += String(parsed.denominator).length - 1;
  }
  const padded = String(numerator).padStart(digits + 1, "0");
  const cut = padded.length - digits;
  const fraction = padded.slice(cut).replace(/0+$/, "");
  return fraction === "" ? padded.slice(0, cut) : `${padded.slice(0, cut)}.${fraction}`;
}

/** The member of an object if it is an object. */
export function objectAt(value: unknown, name: string): JsonObject {
  return objectOf(objectOf(value)?.[name]) ?? {};
}

/** Texts of a list, of one text, or of texts between commas. */
export function textsOf(value: unknown): readonly string[] {
  const items = Array.isArray(value) ? (value as readonly unknown[]) : [value];
  const texts = items.flatMap((item) => textOf(item)?.split(",") ?? []);
  return texts.map((text) => text.trim()).filter((text) => text !== "");
}
