/** A vendor's streamed response. */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  GenerateEventSchema,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { StreamDecoder } from "../codec.ts";
import { JsonSource } from "../../wire/json/source.ts";
import {
  countAt,
  type JsonRecord,
  parseRecord,
  recordAt,
  recordsAt,
  textAt,
  UnreadableReplyError,
} from "../../wire/json/value.ts";
import { EventDataReader, type UnfinishedEvent } from "../../wire/sse/event-stream.ts";
import { createdAt } from "./decode-reply.ts";
import { failureOf } from "./errors.ts";
import { stopReasonOf } from "./finish-reason.ts";
import { grownUsage } from "../features/usage.ts";
import { readUsage } from "./usage.ts";
import { StreamItems } from "./decode-stream-parts.ts";

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
    handler(this.#items, event);
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
    // Some vendors send items, or missing parts of them, only in the last event.
    this.#items.finish(recordsAt(response, "output"));
    this.#events.push(...this.#items.take());
    this.#ended = true;
    this.#usage = grownUsage(
      this.#usage,
      readUsage(response["usage"], (name) => response[name]),
    );
    const usage = this.#usage;
    const value = {
      stopReason: stopReasonOf(response, this.#items.said),
      serviceTier: textAt(response, "service_tier"),
      ...(usage && { usage }),
    };
    this.#events.push(create(GenerateEventSchema, { kind: { case: "end", value } }));
  }

  #fail(record: JsonRecord): void {
    this.#ended = true;
    this.#usage = grownUsage(this.#usage, readUsage(record["usage"]));
    const value = failureOf(record);
    this.#events.push(create(GenerateEventSchema, { kind: { case: "error", value } }));
  }
}

type Handler = (items: StreamItems, event: JsonRecord) => void;

const contentIndex = (event: JsonRecord): number => countAt(event, "content_index") ?? 0;
const deltaOf = (event: JsonRecord): string => textAt(event, "delta");
const input: Handler = (items, event) => items.input(event, deltaOf(event));

/**
 * Handlers of item events. An event with a whole text or input adds what was missing in the deltas.
 */
const handlers: ReadonlyMap<string, Handler> = new Map(
  Object.entries<Handler>({
    "response.output_item.added": (items, event) => items.add(event),
    "response.output_item.done": (items, event) => items.done(event),
    "response.content_part.added": (items, event) =>
      items.addContent(event, contentIndex(event), recordAt(event, "part") ?? {}),
    "response.content_part.done": (items, event) =>
      items.endContent(event, contentIndex(event), recordAt(event, "part") ?? {}),
    "response.output_text.delta": (items, event) =>
      items.text(event, contentIndex(event), deltaOf(event), "output_text"),
    "response.output_text.done": (items, event) =>
      items.wholeText(event, contentIndex(event), textAt(event, "text"), "output_text"),
    "response.output_text.annotation.added": (items, event) =>
      items.annotation(event, contentIndex(event), recordAt(event, "annotation") ?? {}),
    "response.refusal.delta": (items, event) =>
      items.text(event, contentIndex(event), deltaOf(event), "refusal"),
    "response.refusal.done": (items, event) =>
      items.wholeText(event, contentIndex(event), textAt(event, "refusal"), "refusal"),
    "response.function_call_arguments.delta": input,
    "response.function_call_arguments.done": (items, event) =>
      items.wholeInput(event, textAt(event, "arguments")),
    "response.custom_tool_call_input.delta": input,
    "response.custom_tool_call_input.done": (items, event) =>
      items.wholeInput(event, textAt(event, "input")),
    "response.reasoning_summary_part.added": (items, event) => items.addSummary(event),
    "response.reasoning_summary_text.delta": (items, event) =>
      items.summary(event, summaryIndex(event), deltaOf(event)),
    "response.reasoning_summary_text.done": (items, event) =>
      items.wholeSummary(event, summaryIndex(event), textAt(event, "text")),
    "response.reasoning_text.delta": (items, event) => items.reasoningText(event, deltaOf(event)),
    "response.reasoning_text.done": (items, event) =>
      items.wholeReasoningText(event, textAt(event, "text")),
  }),
);

function summaryIndex(event: JsonRecord): number {
  return countAt(event, "summary_index") ?? 0;
}
