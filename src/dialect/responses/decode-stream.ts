/** A vendor's streamed response. */
import { create } from "@bufbuild/protobuf";
import {
  type Part,
  PartSchema,
  type ReasoningSeal,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  GenerateEventSchema,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { StreamDecoder } from "../codec.ts";
import {
  citationDelta,
  inputDelta,
  partDelta,
  partEnd,
  partStart,
  sealDelta,
  textDelta,
} from "../generate-events.ts";
import { JsonSource } from "../json/source.ts";
import {
  countAt,
  type JsonRecord,
  parseRecord,
  recordAt,
  recordsAt,
  textAt,
  UnreadableReplyError,
} from "../json/value.ts";
import { EventDataReader, type UnfinishedEvent } from "../sse/event-stream.ts";
import { decodeCitation } from "./citation.ts";
import {
  createdAt,
  decodeCall,
  decodeOutputContent,
  decodeOutputItem,
  decodeReasoning,
  sealOf,
} from "./decode-reply.ts";
import { failureOf } from "./errors.ts";
import { type ReplyContents, stopReasonOf } from "./finish-reason.ts";
import { readUsage } from "./usage.ts";

/** Implements {@link VendorCodec.decodeStream}. Events of unknown types are passed over. */
export class ResponsesStreamDecoder implements StreamDecoder {
  readonly #data = new EventDataReader();
  readonly #items = new StreamItems();
  #events: GenerateEvent[] = [];
  #usage: Usage | undefined;
  #started = false;
  #ended = false;

  get unfinished(): UnfinishedEvent {
    return this.#data.unfinished;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    this.#data.read(pieces, (data) => this.#onData(data));
    return this.#take();
  }

  end(): GenerateEvent[] {
    const { rest } = this.#data;
    // The last event may lack its empty line.
    return rest === undefined ? [] : this.push([Buffer.from("\n\n")]);
  }

  #take(): GenerateEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #onData(data: string): void {
    if (this.#ended) return;
    if (data === "[DONE]") return;
    const event = parseRecord(data);
    if (event === undefined) throw new UnreadableReplyError("an event is not a JSON object");
    this.#items.source = new JsonSource(data, event);
    this.#onEvent(event);
  }

  #onEvent(event: JsonRecord): void {
    const type = textAt(event, "type");
    switch (type) {
      case "response.created":
      case "response.in_progress":
      case "response.queued":
        this.#start(recordAt(event, "response") ?? {});
        return;
      case "response.completed":
      case "response.incomplete":
        this.#finish(recordAt(event, "response") ?? {});
        return;
      case "response.failed":
        this.#fail(recordAt(event, "response") ?? {});
        return;
      case "error":
        this.#fail(event);
        return;
      default:
        if (type === "" && recordAt(event, "error") !== undefined) return this.#fail(event);
        this.#onItemEvent(type, event);
    }
  }

  #onItemEvent(type: string, event: JsonRecord): void {
    const handler = handlers.get(type);
    if (handler === undefined) return;
    if (!this.#started) this.#start({});
    handler(this.#items, event, countAt(event, "output_index") ?? 0);
    this.#events.push(...this.#items.take());
  }

  #start(response: JsonRecord): void {
    if (this.#started) return;
    this.#started = true;
    const usage = readUsage(response["usage"]);
    this.#usage = usage;
    const value = {
      id: textAt(response, "id"),
      model: textAt(response, "model"),
      created: createdAt(response),
      ...(usage && { usage }),
    };
    this.#events.push(create(GenerateEventSchema, { kind: { case: "start", value } }));
  }

  #finish(response: JsonRecord): void {
    this.#start(response);
    // Some vendors tell the reply in its last event only.
    if (this.#items.isEmpty) {
      recordsAt(response, "output").forEach((item, i) => this.#items.done(i, item));
    }
    this.#items.endItems();
    this.#events.push(...this.#items.take());
    this.#ended = true;
    const usage = readUsage(response["usage"]);
    this.#usage = usage ?? this.#usage;
    const value = {
      stopReason: stopReasonOf(response, this.#items.said),
      serviceTier: textAt(response, "service_tier"),
      ...(usage && { usage }),
    };
    this.#events.push(create(GenerateEventSchema, { kind: { case: "end", value } }));
  }

  #fail(record: JsonRecord): void {
    this.#ended = true;
    this.#usage = readUsage(record["usage"]) ?? this.#usage;
    const value = failureOf(record);
    this.#events.push(create(GenerateEventSchema, { kind: { case: "error", value } }));
  }
}

type Handler = (items: StreamItems, event: JsonRecord, at: number) => void;

const contentIndex = (event: JsonRecord): number => countAt(event, "content_index") ?? 0;
const deltaOf = (event: JsonRecord): string => textAt(event, "delta");
const input: Handler = (items, event, at) => items.input(at, deltaOf(event));

/** What each event of an item does. The events that tell a whole text or input again need nothing: the
 * item's own last event tells it too. */
const handlers: ReadonlyMap<string, Handler> = new Map(
  Object.entries<Handler>({
    "response.output_item.added": (items, event, at) => items.add(at, itemOf(event)),
    "response.output_item.done": (items, event, at) => items.done(at, itemOf(event)),
    "response.content_part.added": (items, event, at) =>
      items.addContent(at, contentIndex(event), recordAt(event, "part") ?? {}),
    "response.content_part.done": (items, event, at) =>
      items.endContent(at, contentIndex(event), recordAt(event, "part") ?? {}),
    "response.output_text.delta": (items, event, at) =>
      items.text(at, contentIndex(event), deltaOf(event), "output_text"),
    "response.output_text.annotation.added": (items, event, at) =>
      items.annotation(at, contentIndex(event), recordAt(event, "annotation") ?? {}),
    "response.refusal.delta": (items, event, at) =>
      items.text(at, contentIndex(event), deltaOf(event), "refusal"),
    "response.function_call_arguments.delta": input,
    "response.custom_tool_call_input.delta": input,
    "response.reasoning_summary_part.added": (items, _event, at) => items.addSummary(at),
    "response.reasoning_summary_text.delta": (items, event, at) =>
      items.summary(at, countAt(event, "summary_index") ?? 0, deltaOf(event)),
    "response.reasoning_text.delta": (items, event, at) => items.reasoningText(at, deltaOf(event)),
  }),
);

// The items of a vendor's stream while they are produced, as parts of a reply.

/** A part that is under way. */
interface OpenPart {
  readonly index: number;
  /** Whether any of its text or input has come. */
  begun: boolean;
  /** How many annotations, or summaries, it has so far. */
  count: number;
  /** Whether any of a reasoning's text has come. */
  hasText: boolean;
}

/** An item that is under way. */
interface OpenItem {
  readonly item: JsonRecord;
  readonly type: string;
  /** By content index; calls and reasoning have one part, under 0. */
  readonly parts: Map<number, OpenPart>;
}

/** Turns the events of items into those of parts. Whatever a vendor leaves out of its deltas is taken from
 * the events that tell the whole. */
class StreamItems {
  /** The text of the current event. */
  source = new JsonSource("{}", {});
  readonly #items = new Map<number, OpenItem>();
  #events: GenerateEvent[] = [];
  #next = 0;
  #calls = false;
  #refusal = false;

  /** What has come so far, as far as it tells why a reply ends. */
  get said(): ReplyContents {
    return { calls: this.#calls, refusal: this.#refusal };
  }

  /** Whether any part has come. */
  get isEmpty(): boolean {
    return this.#next === 0;
  }

  /** The events since the last call. */
  take(): GenerateEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** An item begins. */
  add(at: number, item: JsonRecord): void {
    const type = textAt(item, "type");
    const open: OpenItem = { item, type, parts: new Map() };
    this.#items.set(at, open);
    if (type === "function_call" || type === "custom_tool_call") {
      const value = decodeCall(item);
      const part = this.#begin(open, 0, { case: "toolCall", value: { ...value, input: "" } });
      if (value.input !== "") this.#input(part, value.input);
    } else if (type === "reasoning") {
      const { itemId } = decodeReasoning(item);
      const value = create(PartSchema, { kind: { case: "reasoning", value: { itemId } } });
      this.#begin(open, 0, value.kind);
    }
  }

  /** A content part of a message begins; reasoning has its own. */
  addContent(at: number, index: number, content: JsonRecord): void {
    const open = this.#items.get(at);
    if (open !== undefined && open.type === "message") this.#content(open, index, content);
  }

  /** A text or refusal goes on. */
  text(at: number, index: number, delta: string, type: "output_text" | "refusal"): void {
    const open = this.#message(at);
    const part = open.parts.get(index) ?? this.#content(open, index, { type });
    part.begun = true;
    if (delta !== "") this.#events.push(textDelta(part.index, delta));
  }

  /** A text refers to a source. */
  annotation(at: number, index: number, annotation: JsonRecord): void {
    const open = this.#message(at);
    const part = open.parts.get(index) ?? this.#content(open, index, { type: "output_text" });
    this.#cite(part, annotation);
  }

  /** A content part is complete. */
  endContent(at: number, index: number, content: JsonRecord): void {
    const open = this.#items.get(at);
    if (open === undefined || open.type !== "message") return;
    this.#endContent(open, index, content);
  }

  /** A call's input goes on. */
  input(at: number, delta: string): void {
    const part = this.#items.get(at)?.parts.get(0);
    if (part !== undefined) this.#input(part, delta);
  }

  /** A summary of a reasoning begins. */
  addSummary(at: number): void {
    const part = this.#reasoning(at);
    if (part !== undefined) this.#summaryStart(part);
  }

  /** A summary of a reasoning goes on. */
  summary(at: number, index: number, delta: string): void {
    const part = this.#reasoning(at);
    if (part === undefined) return;
    while (part.count <= index) this.#summaryStart(part);
    if (delta !== "") this.#events.push(summaryDelta(part.index, delta));
  }

  /** A reasoning's text goes on. */
  reasoningText(at: number, delta: string): void {
    const part = this.#reasoning(at);
    if (part === undefined) return;
    part.hasText = true;
    if (delta !== "") this.#events.push(textDelta(part.index, delta));
  }

  /** An item is complete. */
  done(at: number, item: JsonRecord): void {
    if (!this.#items.has(at)) this.add(at, item);
    const open = this.#items.get(at);
    this.#items.delete(at);
    if (open === undefined) return;
    switch (open.type) {
      case "message":
        recordsAt(item, "content").forEach((content, i) => this.#endContent(open, i, content));
        this.#endAll(open);
        break;
      case "function_call":
      case "custom_tool_call": {
        const part = open.parts.get(0);
        if (part !== undefined && !part.begun) this.#input(part, decodeCall(item).input);
        this.#endAll(open);
        break;
      }
      case "reasoning":
        this.#endReasoning(open, item);
        break;
      default:
        for (const part of decodeOutputItem(item, this.source)) this.#whole(part);
    }
  }

  /** Nothing follows: ends what is still under way. */
  endItems(): void {
    for (const open of this.#items.values()) this.#endAll(open);
    this.#items.clear();
  }

  #begin(open: OpenItem, key: number, kind: Part["kind"], extras: Part["extras"] = []): OpenPart {
    const part: OpenPart = { index: this.#next++, begun: false, count: 0, hasText: false };
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
    const text = textAt(content, type === "refusal" ? "refusal" : "text");
    if (text !== "") {
      part.begun = true;
      this.#events.push(textDelta(part.index, text));
    }
    return part;
  }

  #endContent(open: OpenItem, index: number, content: JsonRecord): void {
    const type = textAt(content, "type");
    if (type !== "output_text" && type !== "refusal") return;
    const key = ended(index);
    if (open.parts.has(key)) return;
    const part = open.parts.get(index) ?? this.#content(open, index, { type });
    const text = textAt(content, type === "refusal" ? "refusal" : "text");
    if (!part.begun && text !== "") this.#events.push(textDelta(part.index, text));
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
    if (!part.hasText && text !== "") this.#events.push(textDelta(part.index, text));
    const seal: ReasoningSeal | undefined = sealOf(item);
    if (seal !== undefined) this.#events.push(sealDelta(part.index, seal));
    this.#endAll(open);
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

  #input(part: OpenPart, delta: string): void {
    part.begun = true;
    if (delta !== "") this.#events.push(inputDelta(part.index, delta));
  }

  #cite(part: OpenPart, annotation: JsonRecord): void {
    part.count++;
    const citation = decodeCitation(this.source.textOf(annotation));
    this.#events.push(citationDelta(part.index, citation));
  }

  #summaryStart(part: OpenPart): void {
    part.count++;
    this.#events.push(summaryStart(part.index));
  }

  /** Vendors that send deltas only are served all the same. */
  #message(at: number): OpenItem {
    const open = this.#items.get(at);
    if (open !== undefined) return open;
    const made: OpenItem = { item: {}, type: "message", parts: new Map() };
    this.#items.set(at, made);
    return made;
  }

  #reasoning(at: number): OpenPart | undefined {
    if (!this.#items.has(at)) this.add(at, { type: "reasoning" });
    const open = this.#items.get(at);
    return open?.type === "reasoning" ? open.parts.get(0) : undefined;
  }
}

/** Where a content part is kept once it is complete. */
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

/** The last summary of a reasoning goes on. */
function summaryDelta(index: number, value: string): GenerateEvent {
  return partDelta(index, { case: "summary", value });
}
