/** Finds names that stand twice in one object of a JSON text: here the last one counts, at a vendor maybe the first. */
import { asBuffer } from "../../bytes.ts";
import { jsonText, stringEnd } from "./string-scan.ts";

/** A member whose name stands twice in its object. */
export interface MemberTwice {
  /** Its name, decoded. */
  readonly name: string;
  /** Where it stands, such as `imageParams.n` or `list[2].name`. */
  readonly path: string;
}

/** An object or an array that is open. */
interface Level {
  readonly path: string;
  /** Of an object: those that were read. */
  readonly names?: Set<string>;
  /** Of an object: whether a name comes next. */
  isName: boolean;
  /** Where in it the next value stands. */
  at: string;
  /** Of an array: how many values stand before it. */
  index: number;
}

const quote = 0x22;
const comma = 0x2c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** The first member that stands twice in its object, however deep; `undefined`: none does. @param bytes valid JSON */
export function memberTwice(bytes: Uint8Array): MemberTwice | undefined {
  const text = jsonText(bytes, []);
  const open: Level[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const level = open.at(-1);
    const path = level?.at ?? "";
    const byte = bytes[at];
    if (byte === openBrace) open.push({ path, names: new Set(), isName: true, at: path, index: 0 });
    else if (byte === openBracket) open.push({ path, isName: false, at: `${path}[0]`, index: 0 });
    else if (byte === closeBrace || byte === closeBracket) open.pop();
    else if (byte === comma && level !== undefined) goOn(level);
    else if (byte === quote) {
      const end = stringEnd(text, at + 1);
      if (level?.isName === true) {
        const name = JSON.parse(asBuffer(bytes).toString("utf8", at, end)) as string;
        if (isTwice(level, name)) return { name, path: level.at };
      }
      at = end - 1;
    }
  }
  return undefined;
}

function goOn(level: Level): void {
  if (level.names !== undefined) level.isName = true;
  else level.at = `${level.path}[${++level.index}]`;
}

function isTwice(level: Level, name: string): boolean {
  level.isName = false;
  level.at = level.path === "" ? name : `${level.path}.${name}`;
  const isThere = level.names?.has(name) === true;
  level.names?.add(name);
  return isThere;
}
