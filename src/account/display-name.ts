/** Names that people give to accounts and keys. */
import { ErrorCode, GatewayError } from "../errors.ts";

/** The longest name, in characters: fits a line of a table. */
const charsMax = 200;

/** What no line of text has; the database would refuse some of them. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/**
 * Trims and checks a name.
 *
 * @param charsMin 0 where a name may be left out, else 1
 * @throws GatewayError INVALID_REQUEST
 */
export function parseDisplayName(name: string, charsMin: 0 | 1): string {
  const trimmed = name.trim();
  const chars = Array.from(trimmed).length;
  if (chars < charsMin) throw invalidName("name is required: 1 to 200 characters");
  if (chars > charsMax) throw invalidName(`name is ${chars} characters long: use at most 200`);
  if (unprintable.test(trimmed) || !trimmed.isWellFormed()) {
    throw invalidName("name must be one line of text, without control characters");
  }
  return trimmed;
}

function invalidName(message: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "name" });
}
