/** A whole reply as a response. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Citation,
  type Extra,
  type Part,
  type Reasoning,
  type ToolCall,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReplyOptions } from "../codec.ts";
import { JsonText, writeJson } from "../../wire/json/json-tree.ts";
import { type JsonRecord, parseRecord } from "../../wire/json/value.ts";
import { annotationJson } from "./citation.ts";
import { contentType } from "./decode-content.ts";
import { contentsOf, endingOf, lostEndingNames } from "./finish-reason.ts";
import { ResponseWriter } from "./response-json.ts";
import { itemIdFor, itemPrefixes, type ItemType } from "./wire.ts";
import { wrapSeal } from "../turns/seal.ts";

/** Implements {@link CallerCodec.encodeReply}. */
export function encodeResponsesReply(reply: Reply, options: ReplyOptions): Buffer {
  const { parts, stopReason, stopDetail, usage, serviceTier, created } = reply;
  const names = new OutputIds(options.callId, (name) => options.onDropped(name));
  const ending = endingOf(stopReason, stopDetail, contentsOf(parts));
  const output = new Output(names);
  for (const [at, part] of parts.entries()) {
    output.add(part, at === parts.length - 1 ? ending.status : "completed");
  }
  if (ending.refusal !== "") output.message(refusalContent(ending.refusal), "");
  for (const name of lostEndingNames(reply, ending)) names.drop(name);
  const { status, details } = ending;
  const text = new ResponseWriter(options, created).write({
    status,
    details,
    output: output.end(status),
    usage,
    serviceTier,
  });
  return Buffer.from(text);
}

/** The items of a reply. Texts and refusals that follow each other are one message. */
class Output {
  readonly #names: OutputIds;
  readonly #items: string[] = [];
  #content: JsonRecord[] = [];
  #phase = "";

  constructor(names: OutputIds) {
    this.#names = names;
  }

  /** @param status how complete the part is */
  add(part: Part, status: ItemStatus): void {
    const { kind, extras } = part;
    dropExtras(extras, this.#names);
    switch (kind.case) {
      case "text": {
        const { text, citations } = kind.value;
        return this.message(textContent(text, citations, this.#names), phaseIn(extras));
      }
      case "refusal":
        return this.message(refusalContent(kind.value.text), phaseIn(extras));
      case "toolCall": {
        this.#endMessage("completed");
        const call = kind.value;
        const at = this.#items.length;
        const id = this.#names.item(callType(call), at, call.itemId);
        const callId = this.#names.call(at, call.id);
        const { input } = call;
        const reached = callStatus(call, input, status);
        return this.#push(callItem({ id, callId, call, input, status: reached }));
      }
      case "reasoning": {
        this.#endMessage("completed");
        const id = this.#names.item("reasoning", this.#items.length, kind.value.itemId);
        return this.#push(reasoningItem(id, kind.value));
      }
      case "opaque": {
        const { dialect, type, json } = kind.value;
        if (dialect !== Dialect.RESPONSES || contentType.test(type)) return this.#names.drop(type);
        this.#endMessage("completed");
        this.#items.push(json);
        return;
      }
      case "media":
      case "toolResult":
      case undefined:
      default:
        this.#names.drop(kind.case ?? "part");
    }
  }

  /** Adds a content part to the message under way. */
  message(content: JsonRecord, phase: string): void {
    if (phase !== this.#phase) this.#endMessage("completed");
    this.#phase = phase;
    this.#content.push(content);
  }

  /** All items, each as JSON. */
  end(status: ItemStatus): readonly string[] {
    this.#endMessage(status);
    return this.#items;
  }

  #endMessage(status: ItemStatus): void {
    if (this.#content.length === 0) return;
    const id = this.#names.item("message", this.#items.length);
    this.#push(messageItem({ id, status, content: this.#content, phase: this.#phase }));
    this.#content = [];
    this.#phase = "";
  }

  #push(item: JsonRecord): void {
    this.#items.push(writeJson(item));
  }
}

/** State of an item. */
export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** Creates the IDs of one reply, and records what was omitted from it. */
export class OutputIds {
  readonly #callId: string;
  readonly #drop: (name: string) => void;
  readonly #callIds = new Set<string>();
  readonly #itemIds = new Set<string>();
  readonly #dropped = new Set<string>();

  constructor(callId: string, drop: (name: string) => void) {
    this.#callId = callId;
    this.#drop = drop;
  }

  /** Records a member that cannot be carried, once. */
  drop(name: string): void {
    if (this.#dropped.has(name)) return;
    this.#dropped.add(name);
    this.#drop(name);
  }

  /**
   * The id of the item at `index`: the vendor's, if it is one of this style's that was not used
   * yet.
   */
  item(type: ItemType, index: number, given = ""): string {
    const known = itemIdFor(type, given);
    const isUsable = known !== "" && !this.#itemIds.has(known);
    const id = isUsable ? known : `${itemPrefixes[type]}${this.#callId}_${index}`;
    this.#itemIds.add(id);
    return id;
  }

  /** Returns the ID for a call's result: clients refuse a reply that has one twice. */
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
  /** JSON; empty if there is none. */
  readonly phase: string;
}

/** Writes a message. */
export function messageItem({ id, status, content, phase }: MessageJson): JsonRecord {
  return {
    id,
    type: "message",
    status,
    role: "assistant",
    ...(phase && { phase: new JsonText(phase) }),
    content,
  };
}

/**
 * Returns the phase that a vendor of this style set for a message, as JSON; empty if there is none.
 */
export function phaseIn(extras: readonly Extra[]): string {
  return extras.find(({ name }) => name === "phase")?.json ?? "";
}

/** Records which members of a part are lost. */
export function dropExtras(extras: readonly Extra[], names: OutputIds): void {
  for (const { name } of extras) if (name !== "phase") names.drop(name);
}

/** Writes a text with what it refers to. */
export function textContent(
  text: string,
  citations: readonly Citation[],
  names: OutputIds,
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

/** Data for the item of a call. */
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

/**
 * Returns the status of a call. An incomplete reply may have been cut after its last call, which
 * its arguments show.
 */
export function callStatus({ type }: ToolCall, input: string, status: ItemStatus): ItemStatus {
  if (status !== "incomplete" || type === ToolType.CUSTOM) return status;
  return parseRecord(input) === undefined ? "incomplete" : "completed";
}

/**
 * Writes a call. Where it is complete, a function without arguments has an empty object: clients
 * parse it.
 */
export function callItem({ id, callId, call, input, status }: CallJson): JsonRecord {
  const args = input === "" && status === "completed" ? "{}" : input;
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

/** The reasoning that a client sees. */
type ShownReasoning = Pick<Reasoning, "text" | "summaries">;

/**
 * Returns the reasoning to show: unchanged if a vendor of this style generated it, according to its
 * ID; otherwise as a summary, because most clients show nothing else.
 */
function shownReasoning(reasoning: Reasoning): ShownReasoning {
  const { text, summaries, itemId } = reasoning;
  if (text === "" || itemId !== "") return { text, summaries };
  return { text: "", summaries: [...summaries, text] };
}

/**
 * Writes reasoning. Another style's seal is carried along, so that it comes back with the next
 * turn.
 */
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
