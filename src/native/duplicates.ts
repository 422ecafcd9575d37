/** Names that stand twice in one object: here the last one counts, and at a vendor maybe the first. */
import { jsonText, stringEnd } from "../dialect/json-string.ts";
import { asBuffer } from "../dialect/json-scan.ts";

const quote = 0x22;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** The first name that stands twice in an object of the value, however deep, decoded; `undefined`: none. @param bytes
 * JSON that has been checked */
export function duplicateIn(bytes: Uint8Array): string | undefined {
  const text = jsonText(bytes);
  /** The names so far of each object that is open; of a list nothing. */
  const open: (Set<string> | undefined)[] = [];
  let isName = false;
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at];
    if (byte === quote) {
      const end = stringEnd(text, at + 1);
      const names = open.at(-1);
      if (isName && names !== undefined) {
        const name = JSON.parse(asBuffer(bytes).toString("utf8", at, end)) as string;
        if (names.has(name)) return name;
        names.add(name);
        isName = false;
      }
      at = end;
      continue;
    }
    if (byte === openBrace) open.push(new Set());
    else if (byte === openBracket) open.push(undefined);
    else if (byte === closeBrace || byte === closeBracket) open.pop();
    if (byte === openBrace || byte === comma) isName = open.at(-1) !== undefined;
    at++;
  }
  return undefined;
}
