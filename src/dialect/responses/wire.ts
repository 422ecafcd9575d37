/**
 * IDs of items and calls in responses: which of them may be sent unchanged, and substitutes for the
 * others.
 */
import { createHash } from "node:crypto";

/** ID prefix of each kind of item. */
export const itemPrefixes = {
  message: "msg_",
  function_call: "fc_",
  custom_tool_call: "ctc_",
  function_call_output: "fco_",
  custom_tool_call_output: "ctco_",
  reasoning: "rs_",
} as const;

/** A kind of item that the contract has a place for. */
export type ItemType = keyof typeof itemPrefixes;

/** The longest id that vendors of this style take. */
const idMax = 64;

/**
 * Returns the item's ID if vendors accept it as one of theirs, else empty, because they refuse any
 * other.
 */
export function itemIdFor(type: ItemType, id: string): string {
  return id.startsWith(itemPrefixes[type]) && id.length <= idMax ? id : "";
}

/**
 * The id that joins a call and its result. One that is too long is hashed, the same way for both.
 */
export function callIdFor(id: string): string {
  return id.length <= idMax ? id : `call_${digest(id).slice(0, 48)}`;
}

/**
 * A free text that names something, for example an end user, within the length that vendors take.
 */
export function nameFor(text: string): string {
  return text.length <= idMax ? text : digest(text);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
