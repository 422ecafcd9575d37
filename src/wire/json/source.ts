/**
 * Keeps JSON of callers and vendors as they wrote it. JSON.parse loses digits beyond 2^53, `1.10`,
 * `-0`, the spelling of escapes, repeated names, and the order of names like `"7"`. So values are
 * read from the parsed JSON, but passed on as a slice of its text. Only white space between tokens
 * is omitted: a line break would end an event of a stream.
 */
import { asBuffer } from "../../core/bytes.ts";
import { endOfString } from "./scan.ts";

/**
 * Finds the text of values in parsed JSON. The text is searched on the first request, once, at 0.5
 * ms for a megabyte. A parsed text of which nothing is passed on costs nothing.
 */
export class JsonSource {
  readonly #root: object;
  readonly #text: string | Uint8Array;
  #ranges: FoundRanges | undefined;
  /** The object of the last query, with its members. */
  #members: { readonly of: object; readonly texts: ReadonlyMap<string, string> } | undefined;

  /**
   * @param text the JSON of an object or a list, valid
   * @param root what JSON.parse returned for it
   */
  constructor(text: string | Uint8Array, root: object) {
    this.#text = text;
    this.#root = root;
  }

  /** The JSON of an object or a list in the parsed value, or of the whole. */
  textOf(value: object): string {
    this.#ranges ??= findRanges(bytesOf(this.#text), this.#root);
    const { bytes, ranges, hasSpace } = this.#ranges;
    const range = ranges.get(value);
    // Only values that were created here have no text.
    if (range === undefined) return JSON.stringify(value);
    const json = bytes.toString("utf8", range.start, range.end);
    return hasSpace ? withoutSpace(json) : json;
  }

  /** The JSON of a member of an object in the parsed value; empty if it is absent. */
  memberText(record: object, name: string): string {
    const value = Object.hasOwn(record, name)
      ? (record as Record<string, unknown>)[name]
      : undefined;
    if (value === undefined) return "";
    if (typeof value === "object" && value !== null) return this.textOf(value);
    if (this.#members?.of !== record) {
      const members = objectMembers(this.textOf(record));
      const texts = new Map(members.map((member) => [member.name, member.json]));
      this.#members = { of: record, texts };
    }
    return this.#members.texts.get(name) ?? "";
  }
}

function bytesOf(text: string | Uint8Array): Buffer {
  return typeof text === "string" ? Buffer.from(text) : asBuffer(text);
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const space = 0x20;

/** Range of bytes; `end` is exclusive. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** The ranges of the objects and lists of a text. */
interface FoundRanges {
  readonly bytes: Buffer;
  readonly ranges: ReadonlyMap<unknown, ByteRange>;
  /** Whether there is white space between tokens. */
  readonly hasSpace: boolean;
}

/** An open object or list. */
interface OpenValue {
  /**
   * Its parsed value. Of repeated members only the last is parsed: the others have another value,
   * or undefined.
   */
  readonly value: unknown;
  readonly start: number;
  readonly isList: boolean;
  /** The next element of a list. */
  index: number;
  /** Range of the current member's name, without quotes; 0 if a name follows. */
  nameStart: number;
  nameEnd: number;
}

/**
 * Finds all objects and lists. The range of the last repeated member overwrites the earlier ranges.
 */
function findRanges(bytes: Buffer, root: object): FoundRanges {
  const ranges = new Map<unknown, ByteRange>();
  // Not by recursion: a vendor's reply may be nested deeply.
  const open: OpenValue[] = [];
  let current: OpenValue | undefined;
  let hasSpace = false;
  const { length } = bytes;
  for (let at = 0; at < length; at++) {
    switch (bytes[at] as number) {
      case quote: {
        const end = textEnd(bytes, at + 1);
        if (current?.isList === false && current.nameStart === 0) {
          current.nameStart = at + 1;
          current.nameEnd = end;
        }
        at = end;
        break;
      }
      case comma:
        if (current?.isList === true) current.index++;
        else if (current !== undefined) current.nameStart = 0;
        break;
      case openBrace:
      case openBracket: {
        const value: unknown = current === undefined ? root : childOf(current, bytes);
        if (current !== undefined) open.push(current);
        const isList = bytes[at] === openBracket;
        current = { value, start: at, isList, index: 0, nameStart: 0, nameEnd: 0 };
        break;
      }
      case closeBrace:
      case closeBracket:
        if (current !== undefined) ranges.set(current.value, { start: current.start, end: at + 1 });
        current = open.pop();
        break;
      case space:
      case 0x0a:
      case 0x0d:
      case 0x09:
        hasSpace = true;
        break;
      default:
    }
  }
  return { bytes, ranges, hasSpace };
}

function childOf({ value, isList, index, nameStart, nameEnd }: OpenValue, bytes: Buffer): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  if (isList) return (value as readonly unknown[])[index];
  const name = nameIn(bytes.toString("utf8", nameStart, nameEnd));
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

/** Decodes a name. @param written without quotes */
function nameIn(written: string): string {
  return written.includes("\\") ? (JSON.parse(`"${written}"`) as string) : written;
}

/**
 * Strings up to this length are searched without a native call: many have an escape every few
 * words.
 */
const shortText = 4096;

/** The position of the closing quote of the string whose text begins at `from`. */
function textEnd(bytes: Buffer, from: number): number {
  const near = Math.min(bytes.length, from + shortText);
  let at = from;
  while (at < near) {
    const byte = bytes[at];
    if (byte === quote) return at;
    at += byte === backslash ? 2 : 1;
  }
  return endOfString(bytes, at, bytes.length);
}

/** The position behind the string that begins at `start`. */
function stringEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let before = at;
    while (text.charCodeAt(before - 1) === backslash) before--;
    // With an odd number of backslashes before it, the quote is part of the string.
    if ((at - before) % 2 === 0) return at + 1;
  }
}

/**
 * Removes white space between tokens.
 *
 * @param json valid JSON
 */
export function withoutSpace(json: string): string {
  let text = "";
  let from = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === quote) at = stringEnd(json, at) - 1;
    else if (code <= space) {
      text += json.slice(from, at);
      from = at + 1;
    }
  }
  return from === 0 ? json : text + json.slice(from);
}

/** A member of an object in JSON. */
export interface JsonMember {
  /** The decoded name. */
  readonly name: string;
  /** Its value. */
  readonly json: string;
}

/**
 * The members of a JSON object, in order, repeated ones included. @param json valid JSON; empty if
 * it is no object
 */
export function objectMembers(json: string): JsonMember[] {
  const members: JsonMember[] = [];
  const all = withoutSpace(json);
  if (all.charCodeAt(0) !== openBrace) return members;
  let at = 1;
  while (all.charCodeAt(at) === quote) {
    const nameEnd = stringEnd(all, at);
    const end = endOfValue(all, nameEnd + 1);
    members.push({
      name: nameIn(all.slice(at + 1, nameEnd - 1)),
      json: all.slice(nameEnd + 1, end),
    });
    at = end + 1;
  }
  return members;
}

/** The elements of a JSON list. @param json valid JSON; empty if it is no list */
export function listElements(json: string): string[] {
  const elements: string[] = [];
  const all = withoutSpace(json);
  if (all.charCodeAt(0) !== openBracket) return elements;
  let at = 1;
  while (at < all.length - 1) {
    const end = endOfValue(all, at);
    elements.push(all.slice(at, end));
    at = end + 1;
  }
  return elements;
}

/** A member of a JSON object; of repeated ones the last. Empty if it is absent. */
export function memberOf(json: string, name: string): string {
  return objectMembers(json).findLast((member) => member.name === name)?.json ?? "";
}

/** Writes a JSON object. */
export function writeMembers(members: readonly JsonMember[]): string {
  return `{${members.map(({ name, json }) => `${JSON.stringify(name)}:${json}`).join(",")}}`;
}

/**
 * Changes members of a JSON object, and adds those that it lacks behind the others.
 *
 * @param changes JSON by name; `undefined` removes a member
 */
export function changeMembers(
  json: string,
  changes: Readonly<Record<string, string | undefined>>,
): string {
  const added = new Map(Object.entries(changes));
  const members = objectMembers(json).flatMap((member) => {
    if (!Object.hasOwn(changes, member.name)) return [member];
    added.delete(member.name);
    const changed = changes[member.name];
    return changed === undefined ? [] : [{ ...member, json: changed }];
  });
  for (const [name, changed] of added) {
    if (changed !== undefined) members.push({ name, json: changed });
  }
  return writeMembers(members);
}

/** The position behind the value at `start`, in JSON without white space. */
function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === quote) return stringEnd(text, start);
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = stringEnd(text, at) - 1;
        break;
      case openBrace:
      case openBracket:
        depth++;
        break;
      case closeBrace:
      case closeBracket:
        if (depth === 0) return at;
        if (--depth === 0) return at + 1;
        break;
      case comma:
        if (depth === 0) return at;
        break;
      default:
    }
  }
  return text.length;
}
