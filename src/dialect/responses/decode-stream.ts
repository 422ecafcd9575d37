/** A vendor's streamed response. */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  GenerateEventSchema,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type StreamDecoder } from "../codec.ts";
import {
  UnreadableReplyError,
  countAt,
  parseRecord,
  recordAt,
  recordsAt,
  textAt,
  type JsonRecord,
} from "../json/value.ts";
import { EventDataReader } from "../sse/event-stream.ts";
import { createdAt } from "./decode-reply.ts";
import { stopReasonOf } from "./finish-reason.ts";
import { failureOf } from "./errors.ts";
import { itemOf, StreamItems } from "./decode-stream-items.ts";
import { readUsage } from "./usage.ts";

/** Implements {@link VendorCodec.decodeStream}. Events of unknown types are passed over. */
export class ResponsesStreamDecoder implements StreamDecoder {
  readonly #data = new EventDataReader();
  readonly #items = new StreamItems();
  #events: GenerateEvent[] = [];
  #usage: Usage | undefined;
  #started = false;
  #ended = false;

  get unfinishedBytes(): number {
    return this.#data.restBytes;
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
    const usage = readUsage(response);
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
    const usage = readUsage(response);
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
    this.#usage = readUsage(record) ?? this.#usage;
    const value = failureOf(record);
    this.#events.push(create(GenerateEventSchema, { kind: { case: "error", value } }));
  }
}

type Handler = (items: StreamItems, event: JsonRecord, at: number) => void;

const contentIndex = (event: JsonRecord): number => countAt(event, "content_index") ?? 0;
const delta = (event: JsonRecord): string => textAt(event, "delta");
const input: Handler = (items, event, at) => items.input(at, delta(event));

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
      items.text(at, contentIndex(event), delta(event), "output_text"),
    "response.output_text.annotation.added": (items, event, at) =>
      items.annotation(at, contentIndex(event), recordAt(event, "annotation") ?? {}),
    "response.refusal.delta": (items, event, at) =>
      items.text(at, contentIndex(event), delta(event), "refusal"),
    "response.function_call_arguments.delta": input,
    "response.custom_tool_call_input.delta": input,
    "response.reasoning_summary_part.added": (items, _event, at) => items.addSummary(at),
    "response.reasoning_summary_text.delta": (items, event, at) =>
      items.summary(at, countAt(event, "summary_index") ?? 0, delta(event)),
    "response.reasoning_text.delta": (items, event, at) => items.reasoningText(at, delta(event)),
  }),
);
