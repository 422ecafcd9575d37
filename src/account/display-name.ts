/** Names that people give to accounts and keys. */
import { parseLine } from "../text-line.ts";

/** The longest name, in characters: fits a line of a table. */
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
