/** Recognises the conversation that a request in a wire style continues. */
import { conversationHeaders } from "../../dialect/dialect.ts";
import type { Outline } from "../../wire/json/outline.ts";
import type { ConversationId } from "../../routing/affinity.ts";

/** Members of a body that name it, at the top level. */
const idMembers: ReadonlySet<string> = new Set(["prompt_cache_key", "session_id"]);

/** Members of a body that come before its first message. */
const preambleMembers: ReadonlySet<string> = new Set(["system", "instructions"]);

const idCharsMax = 512;

/**
 * Identifies the conversation of a request: by the ID that its client sends, else by its first
 * messages. Undefined if it has none.
 *
 * @param headers by lower-case name
 */
export function conversationOf(
  body: Buffer,
  { members, commas }: Outline,
  headers: Readonly<Record<string, string>>,
): ConversationId | undefined {
  const id = namedId(body, members, headers);
  if (id !== undefined) return id.slice(0, idCharsMax);
  const parts: Buffer[] = [];
  for (const { key, valueStart, valueEnd } of members) {
    if (preambleMembers.has(key)) parts.push(body.subarray(valueStart, valueEnd));
    if (key !== "messages" && key !== "input") continue;
    const inside = commas.filter((at) => at > valueStart && at < valueEnd);
    parts.push(body.subarray(valueStart, firstUserEnd(body, [valueStart, ...inside], valueEnd)));
  }
  return parts.length === 0 ? undefined : Buffer.concat(parts);
}

function namedId(
  body: Buffer,
  members: Outline["members"],
  headers: Readonly<Record<string, string>>,
): string | undefined {
  for (const name of conversationHeaders) {
    const value = headers[name];
    if (value !== undefined && value !== "") return value;
  }
  for (const { key, valueStart, valueEnd } of members) {
    if (idMembers.has(key)) {
      const id: unknown = JSON.parse(body.toString("utf8", valueStart, valueEnd));
      if (typeof id === "string" && id !== "") return id;
    } else if (key === "metadata") {
      const metadata: unknown = JSON.parse(body.toString("utf8", valueStart, valueEnd));
      const { user_id: id } = (metadata ?? {}) as { user_id?: unknown };
      if (typeof id === "string" && id !== "") return id;
    }
  }
  return undefined;
}

const whitespace = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Finds the end of the user's first message. The position is stable when further messages follow. A
 * plain text counts as one message.
 *
 * @param starts the bytes before each message: the bracket and the commas of the list
 */
function firstUserEnd(body: Buffer, starts: readonly number[], end: number): number {
  for (const [index, start] of starts.entries()) {
    const next = starts[index + 1];
    if (next !== undefined && isOfUser(body, start + 1, next)) return next;
  }
  let last = end - 1;
  while (whitespace.has(body[last - 1] ?? 0)) last--;
  return last;
}

const userRole = /"role"\s*:\s*"user"/;

function isOfUser(body: Buffer, start: number, end: number): boolean {
  return userRole.test(body.toString("latin1", start, end));
}
