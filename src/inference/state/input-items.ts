/** The input items of responses: as stored, as listed, and their ids. Pure. */
import { responseIdCharsMax } from "../../config/limits.ts";
import { isRecord, type JsonRecord } from "../../dialect/json/value.ts";

/** Reads the `input` of a request as items; a plain text becomes one user message. */
export function inputItems(input: unknown): readonly JsonRecord[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  return Array.isArray(input) ? input.filter(isRecord) : [];
}

/** Completes items for listing: each gets a type and an id, messages also parts and a status. */
export function listedItems(
  items: readonly JsonRecord[],
  responseId: string,
): readonly JsonRecord[] {
  return items.map((item, index) => listedItem(item, `${idRoot(responseId)}_${index}`));
}

function listedItem(item: JsonRecord, root: string): JsonRecord {
  const type = typeof item["type"] === "string" ? item["type"] : "message";
  const id = itemId(item) ?? `${idPrefixes.get(type) ?? "item_"}${root}`;
  if (type !== "message") return { ...item, id };
  const { content, role } = item;
  const parts = typeof content === "string" ? [textPart(role, content)] : content;
  return { type, status: "completed", ...item, id, content: parts };
}

/** The item's own id; `undefined`: it has none. */
export function itemId(item: JsonRecord): string | undefined {
  const id = item["id"];
  return typeof id === "string" && id !== "" ? id : undefined;
}

/** The prefixes of generated ids, by type of item. */
const idPrefixes: ReadonlyMap<string, string> = new Map([
  ["message", "msg_"],
  ["reasoning", "rs_"],
  ["function_call", "fc_"],
  ["function_call_output", "fco_"],
  ["custom_tool_call", "ctc_"],
  ["custom_tool_call_output", "ctco_"],
]);

/** The common part of generated ids: derived from the response's id, so that they are the same each time, and short
 * enough for the style's limit of 64 characters. */
function idRoot(responseId: string): string {
  return responseId.replace(/^resp_/, "").slice(0, 48);
}

function textPart(role: unknown, text: string): JsonRecord {
  return role === "assistant"
    ? { type: "output_text", text, annotations: [] }
    : { type: "input_text", text };
}

/** Whether an input element is an item itself, and not a reference to one. */
export function isItem({ type }: JsonRecord): boolean {
  return type !== "item_reference";
}

/** Whether an id can be looked up: PostgreSQL refuses some other texts, and the router longer ones. */
export function isResponseId(id: string): boolean {
  return id.length <= responseIdCharsMax && /^[\x21-\x7e]+$/.test(id);
}

/** The ids by which items can be looked up, without duplicates. */
export function storedItemIds(items: readonly JsonRecord[]): readonly string[] {
  const ids = items.filter(isItem).flatMap((item) => itemId(item) ?? []);
  return [...new Set(ids)].filter(isResponseId);
}
