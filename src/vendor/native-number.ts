/** Numbers in vendors' own requests: some vendors take texts for them, and what decides about money must not be missed. */
import { ErrorCode, GatewayError } from "../errors.ts";

/**
 * A number as the vendor may understand it: `8`, `"8"`, `"1_000"`, `" 8 "`; with a unit, `"8s"`.
 *
 * @returns `undefined`: it is not there, or the vendor takes its own default
 * @throws GatewayError INVALID_REQUEST where it is something else
 */
export function numberSaid(value: unknown, name: string, unit = ""): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = typeof value === "number" ? value : textSaid(value, unit);
  if (number !== undefined && number >= 0 && number <= numberMax) return number;
  throw wrongNumber(name);
}

/** No vendor takes more of anything. */
export const numberMax = 2 ** 31 - 1;

/** What is said of a number that is none. */
export function wrongNumber(name: string, least = 0): GatewayError {
  const text = `"${name}" must be a number from ${least} to ${numberMax}`;
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: name });
}

function textSaid(value: unknown, unit: string): number | undefined {
  const text = typeof value === "string" ? value.trim().replaceAll("_", "") : "";
  const [, digits, written = ""] = /^\+?(\d{1,12}(?:\.\d{1,12})?) ?([a-z]*)$/.exec(text) ?? [];
  return digits !== undefined && (written === "" || written === unit) ? Number(digits) : undefined;
}
