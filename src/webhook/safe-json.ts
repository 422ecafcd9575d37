/**
 * JSON that survives a round trip. A receiver in any language that parses it and writes it again
 * (compact, non-ASCII unescaped) gets the same bytes, so that a signature over either is the same.
 *
 * Values that other writers would change are avoided: unsorted members (Go, Rust and `sort_keys`
 * sort), numbers that are no safe integers, empty objects (PHP turns them into lists), control
 * characters, U+2028 and U+2029, lone surrogates, deep nesting.
 */

/** A value of JSON. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** A value made safe. */
export interface SafeValue {
  readonly value: Json;
  /** Whether it differs from the given value. */
  readonly isAltered: boolean;
}

/** Maximum depth of a payload: the outermost object is level 1. */
const depthMax = 8;

/** Names that no language mistakes for an index, a prototype, or an empty key. */
const nameForm = /^[a-z][a-zA-Z0-9_]*$/;

/**
 * Control characters but tab, line feed and carriage return, and DEL, which some writers escape.
 */
// oxlint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

const lineSeparators = /[\u2028\u2029]/g;

/**
 * Makes a text safe: well-formed, without control characters; the line separators of Unicode become
 * line feeds.
 */
export function safeText(text: string): string {
  return text.toWellFormed().replace(controls, "").replace(lineSeparators, "\n");
}

/**
 * Makes a value safe. Members are sorted by their names' code units. Members with an unsafe name or
 * an undefined value are omitted. Numbers other than safe integers become strings, and empty
 * objects null. Values deeper than {@link depthMax} become their JSON as a string.
 */
export function safeValue(value: Json, depth = 1): SafeValue {
  if (typeof value === "string") return changed(value, safeText(value));
  if (typeof value === "number") return safeNumber(value);
  if (value === null || typeof value === "boolean") return { value, isAltered: false };
  if (depth > depthMax) return { value: safeText(JSON.stringify(value)), isAltered: true };
  return isList(value) ? safeList(value, depth) : safeObject(value, depth);
}

/** The bytes of a value that {@link safeValue} has made. */
export function writeSafe(value: Json): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function safeNumber(value: number): SafeValue {
  // JSON has no negative zero that every language preserves, and no infinity.
  if (Number.isSafeInteger(value)) return { value: value + 0, isAltered: false };
  return { value: Number.isFinite(value) ? String(value) : null, isAltered: true };
}

function safeList(list: readonly Json[], depth: number): SafeValue {
  const items = list.map((item) => safeValue(item, depth + 1));
  return {
    value: items.map(({ value }) => value),
    isAltered: items.some(({ isAltered }) => isAltered),
  };
}

function safeObject(
  object: { readonly [name: string]: Json | undefined },
  depth: number,
): SafeValue {
  const safe: Record<string, Json> = {};
  let isAltered = false;
  for (const name of Object.keys(object).toSorted(byCodeUnit)) {
    const member = object[name];
    if (member === undefined) continue;
    if (!nameForm.test(name)) {
      isAltered = true;
      continue;
    }
    const made = safeValue(member, depth + 1);
    safe[name] = made.value;
    isAltered ||= made.isAltered;
  }
  return Object.keys(safe).length === 0
    ? { value: null, isAltered: true }
    : { value: safe, isAltered };
}

function byCodeUnit(one: string, other: string): number {
  return one < other ? -1 : 1;
}

function isList(value: object): value is readonly Json[] {
  return Array.isArray(value);
}

function changed(before: string, after: string): SafeValue {
  return { value: after, isAltered: before !== after };
}
