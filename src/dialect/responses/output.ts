/** The output items of a response, as they are written for clients. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  ToolType,
  ExtraSchema,
  PartSchema,
  ReasoningSchema,
  ReasoningSealSchema,
  ToolCallSchema,
  type Citation,
  type Extra,
  type Reasoning,
  type ToolCall,
  type Part,
  type ReasoningSeal,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { recordsAt, textAt, type JsonRecord } from "../json/value.ts";
import { wrapSeal } from "../seal.ts";
import { decodeCitation } from "./decode-content.ts";
import { annotationJson } from "./encode-content.ts";
import { itemIdFor, itemPrefixes, type ItemType } from "./item-ids.ts";

/** How far an item is. */
export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** Makes the ids of one reply, and tells what was left out of it. */
export class OutputNames {
  readonly #callId: string;
  readonly #drop: (name: string) => void;
  readonly #callIds = new Set<string>();
  readonly #itemIds = new Set<string>();
  readonly #dropped = new Set<string>();

  constructor(callId: string, drop: (name: string) => void) {
    this.#callId = callId;
    this.#drop = drop;
  }

  /** Notes what cannot be told, once. */
  drop(name: string): void {
    if (this.#dropped.has(name)) return;
    this.#dropped.add(name);
    this.#drop(name);
  }

  /** The id of the item at `index`: the vendor's, where it is one of this style's that was not used yet. */
  item(type: ItemType, index: number, given = ""): string {
    const known = itemIdFor(type, given);
    const isUsable = known !== "" && !this.#itemIds.has(known);
    const id = isUsable ? known : `${itemPrefixes[type]}${this.#callId}_${index}`;
    this.#itemIds.add(id);
    return id;
  }

  /** What a call's result will refer to: clients refuse a reply that has one twice. */
  call(index: number, given: string): string {
    const id = given === "" || this.#callIds.has(given) ? `call_${this.#callId}_${index}` : given;
    this.#callIds.add(id);
    return id;
  }
}

/** A message of the model. */
interface MessageJson {
  readonly id: string;
  readonly status: ItemStatus;
  readonly content: readonly JsonRecord[];
  /** JSON; empty: none. */
  readonly phase: string;
}

/** Writes a message. */
export function messageItem({ id, status, content, phase }: MessageJson): JsonRecord {
  return {
    id,
    type: "message",
    status,
    role: "assistant",
    ...(phase && { phase: JSON.parse(phase) as unknown }),
    content,
  };
}

/** The phase that a vendor of this style gave a message, as JSON; empty: none. */
export function phaseIn(extras: readonly Extra[]): string {
  return extras.find(({ name }) => name === "phase")?.json ?? "";
}

/** Tells which members of a part are lost. */
export function dropExtras(extras: readonly Extra[], names: OutputNames): void {
  for (const { name } of extras) if (name !== "phase") names.drop(name);
}

/** Writes a text with what it refers to. */
export function textContent(
  text: string,
  citations: readonly Citation[],
  names: OutputNames,
): JsonRecord {
  const annotations: unknown[] = [];
  for (const citation of citations) {
    const annotation = annotationJson(citation, text.length);
    if (annotation === undefined) names.drop("citations");
    else annotations.push(annotation);
  }
  return { type: "output_text", annotations, logprobs: [], text };
}

/** Writes a refusal. */
export function refusalContent(refusal: string): JsonRecord {
  return { type: "refusal", refusal };
}

/** What an item of a call is made of. */
interface CallJson {
  readonly id: string;
  readonly callId: string;
  readonly call: ToolCall;
  readonly input: string;
  readonly status: ItemStatus;
}

/** The kind of item that a call is. */
export function callType({ type }: ToolCall): "function_call" | "custom_tool_call" {
  return type === ToolType.CUSTOM ? "custom_tool_call" : "function_call";
}

/** Writes a call. Where it is complete, a function without arguments has an empty object: clients parse it. */
export function callItem({ id, callId, call, input, status }: CallJson): JsonRecord {
  const args = input === "" && status !== "in_progress" ? "{}" : input;
  return {
    id,
    type: callType(call),
    status,
    call_id: callId,
    name: call.name,
    ...(call.namespace && { namespace: call.namespace }),
    ...(call.type === ToolType.CUSTOM ? { input } : { arguments: args }),
  };
}

/** What a client gets to see of reasoning. */
type ShownReasoning = Pick<Reasoning, "text" | "summaries">;

/**
 * How reasoning is shown: as this style's vendors gave it where it is theirs, which its id tells; any
 * other as a summary, because most clients show nothing else.
 */
function shownReasoning(reasoning: Reasoning): ShownReasoning {
  const { text, summaries, itemId } = reasoning;
  if (text === "" || itemId !== "") return { text, summaries };
  return { text: "", summaries: [...summaries, text] };
}

/** Writes reasoning. Another style's seal is carried along, so that it comes back with the next turn. */
export function reasoningItem(
  id: string,
  reasoning: Reasoning,
  { text, summaries }: ShownReasoning = shownReasoning(reasoning),
): JsonRecord {
  const { seal } = reasoning;
  const isOwn = seal?.dialect === Dialect.RESPONSES;
  const sealed = seal === undefined ? "" : isOwn ? seal.data : wrapSeal(seal, reasoning);
  return {
    id,
    type: "reasoning",
    summary: summaries.map((each) => ({ type: "summary_text", text: each })),
    ...(text && { content: [{ type: "reasoning_text", text }] }),
    ...(sealed && { encrypted_content: sealed }),
  };
}

/* The output items of a vendor's response as the parts of a reply. What a vendor leaves out is no error. */

/** Reads an output item. A message has one part for each of its content parts. */
export function decodeOutputItem(item: JsonRecord): Part[] {
  switch (textAt(item, "type")) {
    case "message":
      return recordsAt(item, "content").map((content) => decodeOutputContent(content, item));
    case "function_call":
    case "custom_tool_call":
      return [create(PartSchema, { kind: { case: "toolCall", value: decodeCall(item) } })];
    case "reasoning":
      return [create(PartSchema, { kind: { case: "reasoning", value: decodeReasoning(item) } })];
    default:
      return [opaquePart(item)];
  }
}

/** Reads a content part of the message `item`. */
export function decodeOutputContent(content: JsonRecord, item: JsonRecord): Part {
  const extras = phaseOf(item);
  switch (textAt(content, "type")) {
    case "output_text": {
      const citations = recordsAt(content, "annotations").map((each) =>
        decodeCitation(JSON.stringify(each)),
      );
      const value = { text: textAt(content, "text"), citations };
      return create(PartSchema, { kind: { case: "text", value }, extras });
    }
    case "refusal": {
      const value = { text: textAt(content, "refusal") };
      return create(PartSchema, { kind: { case: "refusal", value }, extras });
    }
    default:
      return opaquePart(content);
  }
}

/** Which phase of an answer a message belongs to: clients must send it back. */
function phaseOf(item: JsonRecord): Extra[] {
  const phase = textAt(item, "phase");
  return phase === "" ? [] : [create(ExtraSchema, { name: "phase", json: JSON.stringify(phase) })];
}

/** Reads a call of one of the caller's tools. */
export function decodeCall(item: JsonRecord): ToolCall {
  const isCustom = textAt(item, "type") === "custom_tool_call";
  return create(ToolCallSchema, {
    id: textAt(item, "call_id") || textAt(item, "id"),
    name: textAt(item, "name"),
    type: isCustom ? ToolType.CUSTOM : ToolType.FUNCTION,
    input: textAt(item, isCustom ? "input" : "arguments"),
    namespace: textAt(item, "namespace"),
    itemId: textAt(item, "id"),
  });
}

/** Reads a reasoning item. */
export function decodeReasoning(item: JsonRecord): Reasoning {
  const seal = sealOf(item);
  return create(ReasoningSchema, {
    text: recordsAt(item, "content")
      .map((part) => textAt(part, "text"))
      .join(""),
    summaries: recordsAt(item, "summary").map((part) => textAt(part, "text")),
    itemId: textAt(item, "id"),
    ...(seal && { seal }),
  });
}

/** The seal of a reasoning item; `undefined`: none. */
export function sealOf(item: JsonRecord): ReasoningSeal | undefined {
  const data = textAt(item, "encrypted_content");
  return data === ""
    ? undefined
    : create(ReasoningSealSchema, { dialect: Dialect.RESPONSES, data });
}

/** Something that only this style knows, as it stands. */
function opaquePart(item: JsonRecord): Part {
  const value = {
    dialect: Dialect.RESPONSES,
    type: textAt(item, "type"),
    json: JSON.stringify(item),
  };
  return create(PartSchema, { kind: { case: "opaque", value } });
}
