/**
 * Relays complete replies in JSON: the public model name is restored in them, and every other byte
 * stays.
 */
import { jsonDepthMax } from "../core/limits.ts";
import { type Member, scanObject, sliceText } from "../wire/json/outline.ts";
import { Splicer } from "../wire/json/splice.ts";
import { JsonScanError, openBracket, skipSpace } from "../wire/json/scan.ts";
import { isRecord, type JsonRecord, UnreadableReplyError } from "../wire/json/value.ts";

/** A reply after relaying. */
export interface JsonReply {
  readonly body: Buffer;
  /** Returns an object member of the vendor's reply; undefined for other values. */
  record(name: string): JsonRecord | undefined;
  /** Whether it has a member. */
  has(name: string): boolean;
  /** Whether a member is an array. */
  hasArray(name: string): boolean;
  /** Whether a member is an array with an element. */
  hasElements(name: string): boolean;
}

/**
 * Restores the public model name in a reply.
 *
 * @param publicModel `undefined`: leave what the vendor wrote
 * @throws UnreadableReplyError if the body is no JSON object
 */
export function relayJsonReply(body: Buffer, publicModel: string | undefined): JsonReply {
  const members = membersOf(body);
  const splicer = new Splicer();
  for (const { key, valueStart, valueEnd } of members) {
    if (key !== "model" || publicModel === undefined) continue;
    splicer.replace(valueStart, valueEnd, Buffer.from(JSON.stringify(publicModel)));
  }
  const find = (name: string): Member | undefined => members.findLast(({ key }) => key === name);
  const startOf = (name: string): number => {
    const start = find(name)?.valueStart ?? body.length;
    return body[start] === openBracket ? start : -1;
  };
  return {
    body: splicer.apply(body, body.length),
    record(name) {
      const member = find(name);
      const value: unknown = member && JSON.parse(sliceText(body, member));
      return isRecord(value) ? value : undefined;
    },
    has: (name) => find(name) !== undefined,
    hasArray: (name) => startOf(name) >= 0,
    hasElements(name) {
      const start = startOf(name);
      return start >= 0 && body[skipSpace(body, start + 1, body.length)] !== closeBracket;
    },
  };
}

const closeBracket = 0x5d;

function membersOf(body: Buffer): readonly Member[] {
  try {
    return scanObject(body, { depthMax: jsonDepthMax }).members;
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    throw new UnreadableReplyError(`${error.message} at byte ${error.offset}`);
  }
}
