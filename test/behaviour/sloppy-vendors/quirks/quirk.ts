/** A row of the tables of quirks. */
import type { Conversation } from "../conversation.ts";
import type { Json, VendorStyle } from "../vendor-reply.ts";

/** A way in which replies of real vendors differ from the documentation of their style. */
export interface Quirk {
  /** Completes the sentence "The vendor …". */
  readonly name: string;
  /** Vendors, servers and proxies that show it. */
  readonly vendors: string;
  /**
   * A public report of it, or of its kind in another place: `owner/name#number` at GitHub, or an
   * address.
   */
  readonly source: string;
  /** Quirks about the same thing are not combined: they replace each other's form. */
  readonly about?: string | readonly string[];
  /** Whether it can show in the conversation. Default: always. */
  readonly suits?: (of: Conversation) => boolean;
  /** Changes the events of a stream. Absent if streams do not show it. */
  readonly stream?: (events: readonly Json[], of: Conversation) => readonly Json[];
  /** Changes a whole reply. Absent means whole replies do not show it. */
  readonly whole?: (reply: Json, of: Conversation) => Json;
  /** Changes the text of a stream. */
  readonly streamText?: (text: string) => string;
  /** Changes the text of a whole reply. */
  readonly wholeText?: (text: string) => string;
}

/** The quirks of vendors of a style. */
export type QuirkTable = Readonly<Record<VendorStyle, readonly Quirk[]>>;

/** Whether the conversation has calls. */
export const hasCalls = ({ calls }: Conversation): boolean => calls.length > 0;

/** Whether it has calls of functions only. */
export const hasFunctions = (of: Conversation): boolean =>
  hasCalls(of) && of.calls.every(({ isCustom }) => !isCustom);

/** An object without some of its members. */
export function without(json: Json, ...names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(json).filter(([name]) => !names.includes(name)));
}

/** Replaces the last event for which `test` holds. */
export function editLast(
  events: readonly Json[],
  test: (event: Json) => boolean,
  edit: (event: Json) => readonly Json[],
): readonly Json[] {
  const at = events.findLastIndex(test);
  const event = events[at];
  return event === undefined
    ? events
    : [...events.slice(0, at), ...edit(event), ...events.slice(at + 1)];
}
