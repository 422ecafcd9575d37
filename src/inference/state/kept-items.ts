/** Which ids can be asked for, and which items are found by theirs. Pure. */
import { responseIdCharsMax } from "../../config/limits.ts";
import type { JsonRecord } from "../../dialect/json.ts";
import { itemId } from "./input-items.ts";

/** A reference is no item: it only names one. */
export function isItem({ type }: JsonRecord): boolean {
  return type !== "item_reference";
}

/** What can be asked for: PostgreSQL fails on some other texts, and the router takes no longer ones. */
export function isResponseId(id: string): boolean {
  return id.length <= responseIdCharsMax && /^[\x21-\x7e]+$/.test(id);
}

/** The ids by which items can be found, each once. */
export function keptItemIds(items: readonly JsonRecord[]): readonly string[] {
  const ids = items.filter(isItem).flatMap((item) => itemId(item) ?? []);
  return [...new Set(ids)].filter(isResponseId);
}
