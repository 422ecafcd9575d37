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
  if (typeof value === "number" && value >= 0) return value;
  const text = typeof value === "string" ? value.trim().replaceAll("_", "") : "";
  const [, digits, written = ""] = /^\+?(\d{1,12}(?:\.\d{1,12})?) ?([a-z]*)$/.exec(text) ?? [];
  if (digits !== undefined && (written === "" || written === unit)) return Number(digits);
  throw new GatewayError(ErrorCode.INVALID_REQUEST, `"${name}" must be a number`, { param: name });
}
