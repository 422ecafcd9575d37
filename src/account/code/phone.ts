/** Parses, validates and masks mobile numbers. */
import { parsePhoneNumberFromString, type PhoneNumber } from "libphonenumber-js/max";
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/** A number that can receive codes. */
export interface Phone {
  /** In E.164 form: `+8613800138000`. */
  readonly number: string;
  /** The calling code of its country, for example `86`. */
  readonly callingCode: string;
}

/**
 * Types of numbers that may receive codes. In some countries mobile numbers cannot be distinguished
 * from landlines. All other types are refused: SMS fraud uses numbers that earn money when they are
 * called.
 */
const servedTypes: ReadonlySet<string | undefined> = new Set(["MOBILE", "FIXED_LINE_OR_MOBILE"]);

/**
 * Parses a number in international form.
 *
 * @param countries ISO 3166-1 alpha-2 codes of the countries served; empty means all
 * @throws GatewayError INVALID_REQUEST
 */
export function parsePhone(text: string, countries: readonly string[]): Phone {
  const wrong = (message: string): GatewayError =>
    new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "phone" });
  const found = text.length > 40 ? undefined : parsePhoneNumberFromString(text);
  if (found === undefined || !found.isValid() || found.ext !== undefined) {
    throw wrong(
      "phone is not a mobile number in international form: write + and the country code, such as +8613800138000",
    );
  }
  if (!servedTypes.has(found.getType())) {
    throw wrong("phone is not a mobile number, so no SMS can be sent to it: use another number");
  }
  if (countries.length > 0 && !countries.includes(found.country ?? "")) {
    throw wrong(
      `numbers of this country are not accepted: use a number of ${countries.join(", ")}`,
    );
  }
  return { number: found.number, callingCode: found.countryCallingCode };
}

/** Masks a number: `+86 138****8000`. */
export function maskPhone(number: string): string {
  const found: PhoneNumber | undefined = parsePhoneNumberFromString(number);
  const national = found?.nationalNumber ?? number.slice(1);
  const code = found === undefined ? "" : `+${found.countryCallingCode} `;
  // Short numbers show less: at least four digits stay hidden.
  const shown = Math.max(0, national.length - 4);
  const tail = Math.min(4, Math.ceil(shown / 2));
  const head = Math.min(3, shown - tail);
  const hidden = "*".repeat(Math.max(4, national.length - head - tail));
  return `${code}${national.slice(0, head)}${hidden}${tail === 0 ? "" : national.slice(-tail)}`;
}
