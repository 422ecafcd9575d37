/** Reads parsed JSON of vendors by member; values of an unexpected type count as absent. */

/** A JSON object from JSON.parse. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/**
 * Parses a vendor's whole reply.
 *
 * @throws UnreadableReplyError if it is no JSON object
 */
export function parseReply(body: Buffer): JsonRecord {
  const value = parseRecord(body.toString("utf8"));
  if (value !== undefined) return value;
  throw new UnreadableReplyError("the vendor's reply is not a JSON object");
}

/** Parses a JSON object; undefined if the text is none. */
export function parseRecord(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a text is JSON. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object member; undefined if it is none. */
export function recordAt(record: JsonRecord, name: string): JsonRecord | undefined {
  const value = record[name];
  return isRecord(value) ? value : undefined;
}

/** The objects in an array member; empty if it is none. */
export function recordsAt(record: JsonRecord, name: string): JsonRecord[] {
  const value = record[name];
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** A string member; empty if it is none. */
export function textAt(record: JsonRecord, name: string): string {
  const value = record[name];
  return typeof value === "string" ? value : "";
}

/** An integer member from 0 to 2³¹ − 1; undefined if it is none. */
export function countAt(record: JsonRecord, name: string): number | undefined {
  const value = record[name];
  const isCount =
    typeof value === "number" && Number.isInteger(value) && value >= 0 && value < 2 ** 31;
  return isCount ? value : undefined;
}

/** As {@link countAt}, in Google's JSON: 64-bit numbers are strings, small ones either form. */
export function protoCountAt(record: JsonRecord, name: string): number | undefined {
  const value = record[name];
  const isText = typeof value === "string" && /^\d{1,10}$/.test(value);
  return isText ? countAt({ [name]: Number(value) }, name) : countAt(record, name);
}

/** A vendor's reply that cannot be read. The message is for the log. */
export class UnreadableReplyError extends Error {}

/** Sets a member. Not by assignment: a client may call a member `__proto__`. @returns the value */
export function setMember<Value>(
  record: Record<string, unknown>,
  name: string,
  value: Value,
): Value {
  Object.defineProperty(record, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
  return value;
}
