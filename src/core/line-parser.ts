/** Parses single lines of text that people type: names and reasons. */
import { ErrorCode, GatewayError } from "./errors.ts";

/** Control characters and line separators. PostgreSQL refuses some of them. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** Limits of a line. */
interface LineOptions {
  /** The request member, for the error. */
  readonly param: string;
  /** Counted in characters, not in UTF-16 units. */
  readonly charsMin: 0 | 1;
  readonly charsMax: number;
}

/** Trims and checks a line of text. @throws GatewayError INVALID_REQUEST */
export function parseLine(text: string, { param, charsMin, charsMax }: LineOptions): string {
  const trimmed = text.trim();
  const chars = Array.from(trimmed).length;
  const wrong = (message: string): GatewayError =>
    new GatewayError(ErrorCode.INVALID_REQUEST, `${param} ${message}`, { param });
  if (chars < charsMin) throw wrong(`is required: 1 to ${charsMax} characters`);
  if (chars > charsMax) throw wrong(`is ${chars} characters long: use at most ${charsMax}`);
  if (unprintable.test(trimmed) || !trimmed.isWellFormed()) {
    throw wrong("must be one line of text, without control characters");
  }
  return trimmed;
}

/** The longest name, in characters. It fits a table row. */
const charsMax = 200;

/**
 * Trims and checks a name.
 *
 * @param charsMin 0 where a name may be left out, else 1
 * @throws GatewayError INVALID_REQUEST
 */
export function parseDisplayName(name: string, charsMin: 0 | 1): string {
  return parseLine(name, { param: "name", charsMin, charsMax });
}
