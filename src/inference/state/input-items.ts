/** The input of a response as it is kept, and as it is listed. */
import { responseIdCharsMax } from "../../config/limits.ts";
import { isRecord, type JsonRecord } from "../../dialect/json/value.ts";

/** The `input` member of a request as a list of items; a text alone is one message of the user. */
export function inputItems(input: unknown): readonly JsonRecord[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  return Array.isArray(input) ? input.filter(isRecord) : [];
}

/** Items as the style lists them: each with a type and an id, messages with parts and a status. */
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

/** The id that an item came with. */
export function itemId(item: JsonRecord): string | undefined {
  const id = item["id"];
  return typeof id === "string" && id !== "" ? id : undefined;
}

/** What the ids of each type of item begin with. */
const idPrefixes: ReadonlyMap<string, string> = new Map([
  ["message", "msg_"],
  ["reasoning", "rs_"],
  ["function_call", "fc_"],
  ["function_call_output", "fco_"],
  ["custom_tool_call", "ctc_"],
  ["custom_tool_call_output", "ctco_"],
]);

/** Ids are at most 64 characters, and made of the response's, so that they are the same each time. */
function idRoot(responseId: string): string {
  return responseId.replace(/^resp_/, "").slice(0, 48);
}

function textPart(role: unknown, text: string): JsonRecord {
  return role === "assistant"
    ? { type: "output_text", text, annotations: [] }
    : { type: "input_text", text };
}

/* Which ids can be asked for, and which items are found by theirs. Pure. */

/** A reference is no item: it only names one. */
export function isItem({ type }: JsonRecord): boolean {
  return type !== "item_reference";
}

/** What can be asked for: PostgreSQL fails on some other texts, and the router takes no longer ones. */
export function isResponseId(id: string): boolean {
  return id.length <= responseIdCharsMax && /^[\x21-\x7e]+$/.test(id);
}

/** The ids by which items can be found, each once. */
export function storedItemIds(items: readonly JsonRecord[]): readonly string[] {
  const ids = items.filter(isItem).flatMap((item) => itemId(item) ?? []);
  return [...new Set(ids)].filter(isResponseId);
}
