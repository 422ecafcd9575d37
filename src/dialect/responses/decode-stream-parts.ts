/** The items of a vendor's stream while they are produced, as parts of a reply. */
import { create } from "@bufbuild/protobuf";
import {
  type Part,
  PartSchema,
  type ReasoningSeal,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import {
  citationDelta,
  inputDelta,
  partDelta,
  partEnd,
  partStart,
  sealDelta,
  textDelta,
} from "../generate-events.ts";
import { JsonSource } from "../../wire/json/source.ts";
import { type JsonRecord, recordAt, recordsAt, textAt } from "../../wire/json/value.ts";
import { decodeCitation } from "./citation.ts";
import {
  decodeCall,
  decodeOutputContent,
  decodeOutputItem,
  decodeReasoning,
  sealOf,
} from "./decode-reply.ts";
import { ItemPlaces } from "./item-places.ts";
import type { ReplyContents } from "./finish-reason.ts";
import { StreamedInput } from "../streamed-input.ts";

/** A part that is under way. */
interface OpenPart {
  readonly index: number;
  /** Characters of its text so far; for reasoning with summaries, of the last summary. */
  size: number;
  /** Number of annotations or summaries so far. */
  count: number;
  /** Characters of a reasoning's text so far. */
  textSize: number;
}

/** An item that is under way. */
interface OpenItem {
  readonly item: JsonRecord;
  readonly type: string;
  /** By content index; calls and reasoning have one part, under 0. */
  readonly parts: Map<number, OpenPart>;
  /** Input of a call that its start event contained. */
  readonly begun: string;
  /** The input of a call. */
  readonly input: StreamedInput;
}

/**
 * Converts the events of items to events of parts. Data missing in a vendor's deltas is taken from
 * the events that repeat the whole.
 */
export class StreamItems {
  /** The text of the current event. */
  source = new JsonSource("{}", {});
  readonly #places = new ItemPlaces();
  readonly #items = new Map<number, OpenItem>();
  #events: GenerateEvent[] = [];
  #next = 0;
  #calls = false;
  #refusal = false;

  /** The contents so far, as needed for the end reason. */
  get said(): ReplyContents {
    return { calls: this.#calls, refusal: this.#refusal };
  }

  /** The events since the last call. */
  take(): GenerateEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** An item begins. */
  add(event: JsonRecord): void {
    const key = this.#places.begun(event);
    if (key !== undefined) this.#add(key, itemOf(event));
  }

  /** A content part of a message begins; reasoning has its own. */
  addContent(event: JsonRecord, index: number, content: JsonRecord): void {
    const open = this.#open(event);
    if (open?.type === "message" && !open.parts.has(index)) this.#content(open, index, content);
  }

  /** Adds to a text or refusal. */
  text(event: JsonRecord, index: number, delta: string, type: TextType): void {
    const part = this.#messagePart(event, index, type);
    if (part !== undefined) this.#text(part, delta);
  }

  /** A text or refusal is complete. */
  wholeText(event: JsonRecord, index: number, whole: string, type: TextType): void {
    const part = this.#messagePart(event, index, type);
    if (part !== undefined) this.#text(part, whole.slice(part.size));
  }

  /** A text refers to a source. */
  annotation(event: JsonRecord, index: number, annotation: JsonRecord): void {
    const part = this.#messagePart(event, index, "output_text");
    if (part !== undefined) this.#cite(part, annotation);
  }

  /** A content part is complete. */
  endContent(event: JsonRecord, index: number, content: JsonRecord): void {
    const open = this.#open(event);
    if (open?.type === "message") this.#endContent(open, index, content);
  }

  /** Adds to a call's input. */
  input(event: JsonRecord, delta: string): void {
    const open = this.#open(event);
    open?.input.add(delta);
    this.#input(open);
  }

  /** A call's input is complete. */
  wholeInput(event: JsonRecord, whole: string): void {
    const open = this.#open(event);
    if (whole !== "") open?.input.complete(whole);
    this.#input(open);
  }

  /** A summary of a reasoning begins. */
  addSummary(event: JsonRecord): void {
    const part = this.#reasoning(event);
    if (part !== undefined) this.#summaryStart(part);
  }

  /** Adds to a reasoning's summary. */
  summary(event: JsonRecord, index: number, delta: string): void {
    const part = this.#reasoning(event);
    if (part === undefined) return;
    while (part.count <= index) this.#summaryStart(part);
    part.size += delta.length;
    if (delta !== "") this.#events.push(summaryDelta(part.index, delta));
  }

  /** A summary of a reasoning is complete. */
  wholeSummary(event: JsonRecord, index: number, whole: string): void {
    const part = this.#reasoning(event);
    // Of a summary that another one followed, all is known.
    if (part === undefined || part.count > index + 1) return;
    this.summary(event, index, whole.slice(part.count === index + 1 ? part.size : 0));
  }

  /** Adds to a reasoning's text. */
  reasoningText(event: JsonRecord, delta: string): void {
    const part = this.#reasoning(event);
    if (part === undefined) return;
    part.textSize += delta.length;
    if (delta !== "") this.#events.push(textDelta(part.index, delta));
  }

  /** A reasoning's text is complete. */
  wholeReasoningText(event: JsonRecord, whole: string): void {
    const part = this.#reasoning(event);
    if (part !== undefined) this.reasoningText(event, whole.slice(part.textSize));
  }

  /** An item is complete. */
  done(event: JsonRecord): void {
    const key = this.#places.ended(event);
    if (key !== undefined) this.#done(key, itemOf(event));
  }

  /** The reply is complete: adds what only its output has, and ends what is still under way. */
  finish(output: readonly JsonRecord[]): void {
    const counts = new Map<string, number>();
    for (const item of output) {
      const type = textAt(item, "type");
      const at = counts.get(type) ?? 0;
      counts.set(type, at + 1);
      const key = this.#places.inOutput(item, at);
      if (key !== undefined) this.#done(key, item);
    }
    for (const open of this.#items.values()) this.#endCall(open, {});
    for (const open of this.#items.values()) this.#endAll(open);
    this.#items.clear();
  }

  #add(key: number, item: JsonRecord): OpenItem {
    const type = textAt(item, "type");
    const call = decodeCall(item);
    // Some vendors begin with an empty object, or with all of the input that they then stream.
    const begun = isCall(type) ? call.input : "";
    const open: OpenItem = { item, type, parts: new Map(), begun, input: new StreamedInput() };
    open.input.isText = type === "custom_tool_call";
    this.#items.set(key, open);
    if (isCall(type)) {
      if (call.name !== "") this.#beginCall(open, item);
    } else if (type === "reasoning") {
      const { itemId } = decodeReasoning(item);
      const value = create(PartSchema, { kind: { case: "reasoning", value: { itemId } } });
      this.#begin(open, 0, value.kind);
    }
    return open;
  }

  #beginCall(open: OpenItem, item: JsonRecord): OpenPart {
    const value = { ...decodeCall(item), input: "" };
    return this.#begin(open, 0, { case: "toolCall", value });
  }

  #done(key: number, item: JsonRecord): void {
    const open = this.#items.get(key) ?? this.#add(key, item);
    this.#items.delete(key);
    switch (open.type || textAt(item, "type")) {
      case "message":
        recordsAt(item, "content").forEach((content, i) => this.#endContent(open, i, content));
        break;
      case "function_call":
      case "custom_tool_call":
        this.#endCall(open, item);
        break;
      case "reasoning":
        this.#endReasoning(open, item);
        break;
      default:
        for (const part of decodeOutputItem(item, this.source)) this.#whole(part);
    }
    this.#endAll(open);
  }

  /** Adds the input of a call that no delta contained. A call without a name is ignored. */
  #endCall(open: OpenItem, item: JsonRecord): void {
    if (!isCall(open.type || textAt(item, "type"))) return;
    const { name, input: whole } = decodeCall(item);
    if (!open.parts.has(0) && name !== "") this.#beginCall(open, item);
    open.input.complete(whole || (open.input.text === "" ? open.begun : ""));
    this.#input(open);
  }

  #begin(open: OpenItem, key: number, kind: Part["kind"], extras: Part["extras"] = []): OpenPart {
    const part: OpenPart = { index: this.#next++, size: 0, count: 0, textSize: 0 };
    open.parts.set(key, part);
    if (kind.case === "toolCall") this.#calls = true;
    if (kind.case === "refusal") this.#refusal = true;
    this.#events.push(
      partStart(part.index, { $typeName: "uas.inference.v1.Part", kind, extras: [...extras] }),
    );
    return part;
  }

  #content(open: OpenItem, index: number, content: JsonRecord): OpenPart {
    const type = textAt(content, "type");
    const { kind, extras } = decodeOutputContent({ type }, open.item, this.source);
    const part = this.#begin(open, index, kind, extras);
    this.#text(part, textAt(content, type === "refusal" ? "refusal" : "text"));
    return part;
  }

  #endContent(open: OpenItem, index: number, content: JsonRecord): void {
    const type = textAt(content, "type");
    if (type !== "output_text" && type !== "refusal") return;
    const key = ended(index);
    if (open.parts.has(key)) return;
    const part = open.parts.get(index) ?? this.#content(open, index, { type });
    const text = textAt(content, type === "refusal" ? "refusal" : "text");
    this.#text(part, text.slice(part.size));
    for (const annotation of recordsAt(content, "annotations").slice(part.count)) {
      this.#cite(part, annotation);
    }
    this.#events.push(partEnd(part.index));
    open.parts.delete(index);
    open.parts.set(key, part);
  }

  #endReasoning(open: OpenItem, item: JsonRecord): void {
    const part = open.parts.get(0);
    if (part === undefined) return;
    const { text, summaries } = decodeReasoning(item);
    for (const summary of summaries.slice(part.count)) {
      this.#summaryStart(part);
      if (summary !== "") this.#events.push(summaryDelta(part.index, summary));
    }
    const rest = text.slice(part.textSize);
    if (rest !== "") this.#events.push(textDelta(part.index, rest));
    const seal: ReasoningSeal | undefined = sealOf(item);
    if (seal !== undefined) this.#events.push(sealDelta(part.index, seal));
  }

  #endAll(open: OpenItem): void {
    for (const [key, part] of open.parts) {
      if (key >= 0) this.#events.push(partEnd(part.index));
    }
    open.parts.clear();
  }

  #whole(part: Part): void {
    const index = this.#next++;
    this.#events.push(partStart(index, part), partEnd(index));
  }

  #text(part: OpenPart, delta: string): void {
    part.size += delta.length;
    if (delta !== "") this.#events.push(textDelta(part.index, delta));
  }

  /** Returns the new part of a call's input, once the call has begun. */
  #input(open: OpenItem | undefined): void {
    const part = open?.parts.get(0);
    const rest = part === undefined ? "" : (open?.input.take() ?? "");
    if (part !== undefined && rest !== "") this.#events.push(inputDelta(part.index, rest));
  }

  #cite(part: OpenPart, annotation: JsonRecord): void {
    part.count++;
    const citation = decodeCitation(this.source.textOf(annotation));
    this.#events.push(citationDelta(part.index, citation));
  }

  #summaryStart(part: OpenPart): void {
    part.count++;
    part.size = 0;
    this.#events.push(summaryStart(part.index));
  }

  /**
   * The item of an event, unless it is complete. An item of which only deltas come begins with
   * them.
   */
  #open(event: JsonRecord): OpenItem | undefined {
    return this.#items.get(this.#places.of(event));
  }

  #messagePart(event: JsonRecord, index: number, type: TextType): OpenPart | undefined {
    const open = this.#openAs(event, "message");
    if (open === undefined || open.parts.has(ended(index))) return undefined;
    return open.parts.get(index) ?? this.#content(open, index, { type });
  }

  #reasoning(event: JsonRecord): OpenPart | undefined {
    return this.#openAs(event, "reasoning")?.parts.get(0);
  }

  #openAs(event: JsonRecord, type: "message" | "reasoning"): OpenItem | undefined {
    const { size } = this.#places;
    const key = this.#places.of(event);
    const open = key < size ? this.#items.get(key) : this.#add(key, { type });
    return open?.type === type ? open : undefined;
  }
}

/** The content of messages that is text. */
type TextType = "output_text" | "refusal";

function isCall(type: string): boolean {
  return type === "function_call" || type === "custom_tool_call";
}

/** Key under which a complete content part is stored. */
function ended(index: number): number {
  return -1 - index;
}

/** The item of an event. */
function itemOf(event: JsonRecord): JsonRecord {
  return recordAt(event, "item") ?? {};
}

/** A new summary of a reasoning begins. */
function summaryStart(index: number): GenerateEvent {
  return partDelta(index, { case: "summaryStart", value: true });
}

/** Adds to the last summary of a reasoning. */
function summaryDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "summary", value });
}
