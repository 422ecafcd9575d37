/** The input items of responses: as stored, as listed, and their ids. Pure. */
import { responseIdCharsMax } from "../../core/limits.ts";
import { changeMembers, listElements, memberOf, withoutSpace } from "../../wire/json/source.ts";
import { type JsonRecord, parseRecord } from "../../wire/json/value.ts";

/** An item, with its text as its author wrote it. */
export interface JsonItem {
  readonly record: JsonRecord;
  readonly json: string;
}

/**
 * Reads the `input` of a request as items; a plain text becomes one user message. @param json empty
 * if it is absent
 */
export function inputItems(json: string): readonly JsonItem[] {
  const text = withoutSpace(json);
  return text.startsWith('"') ? readItems(`[{"role":"user","content":${text}}]`) : readItems(text);
}

/** The items of a list in JSON. */
export function readItems(json: string): readonly JsonItem[] {
  return listElements(json).flatMap((element) => {
    const record = parseRecord(element);
    return record === undefined ? [] : [{ record, json: element }];
  });
}

/** The JSON of a list of items. */
export function itemsJson(items: readonly JsonItem[]): string {
  return `[${items.map(({ json }) => json).join(",")}]`;
}

/** The items that a response, as JSON, has in its output. */
export function outputItems(response: string): readonly JsonItem[] {
  return readItems(memberOf(response, "output"));
}

/** Completes items for listing: each gets a type and an id, messages also parts and a status. */
export function listedItems(items: readonly JsonItem[], responseId: string): readonly JsonItem[] {
  return items.map((item, index) => listedItem(item, `${idRoot(responseId)}_${index}`));
}

function listedItem({ record, json }: JsonItem, root: string): JsonItem {
  const type = typeof record["type"] === "string" ? record["type"] : "message";
  const id = itemId(record) ?? `${idPrefixes.get(type) ?? "item_"}${root}`;
  const changes = type === "message" ? messageMembers(record, json) : {};
  const listed = changeMembers(json, { ...changes, id: JSON.stringify(id) });
  return { record: parseRecord(listed) ?? {}, json: listed };
}

/** The members that a listed message has in any case. */
function messageMembers(record: JsonRecord, json: string): Record<string, string> {
  const content = memberOf(json, "content");
  return {
    ...(record["type"] === undefined && { type: '"message"' }),
    ...(record["status"] === undefined && { status: '"completed"' }),
    ...(content.startsWith('"') && { content: `[${textPart(record["role"], content)}]` }),
  };
}

/** The item's own id; undefined if it has none. */
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

/**
 * The common part of generated ids: derived from the response's id, so that they are the same each
 * time, and short enough for the style's limit of 64 characters.
 */
function idRoot(responseId: string): string {
  return responseId.replace(/^resp_/, "").slice(0, 48);
}

function textPart(role: unknown, text: string): string {
  return role === "assistant"
    ? `{"type":"output_text","text":${text},"annotations":[]}`
    : `{"type":"input_text","text":${text}}`;
}

/** Whether an input element is an item itself, and not a reference to one. */
export function isItem({ record }: JsonItem): boolean {
  return record["type"] !== "item_reference";
}

/**
 * Whether an id can be looked up: PostgreSQL refuses some other texts, and the router longer ones.
 */
export function isResponseId(id: string): boolean {
  return id.length <= responseIdCharsMax && /^[\x21-\x7e]+$/.test(id);
}

/** The ids by which items can be looked up, without duplicates. */
export function storedItemIds(items: readonly JsonItem[]): readonly string[] {
  const ids = items.filter(isItem).flatMap(({ record }) => itemId(record) ?? []);
  return [...new Set(ids)].filter(isResponseId);
}
