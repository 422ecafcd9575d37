/**
 * Only responses: its events carry a sequence number, and every one names its item. Writes those
 * events as text.
 */
import { ToolType, type ToolCall } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { GatewayError } from "../../core/errors.ts";
import { errorBody } from "../codec.ts";
import { type JsonText, writeJson } from "../../wire/json/json-tree.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import { callItem, callStatus, type ItemStatus } from "./encode-reply.ts";

/** Numbers the events of one stream and writes them. */
export class EventWriter {
  #next: number;

  /** @param first the number of the first event. Default 0 */
  constructor(first = 0) {
    this.#next = first;
  }

  /** Number of the next event. */
  next(): number {
    return this.#next++;
  }

  /** @param members JSON members, without braces; at least one */
  event(type: string, members: string): string {
    return `${head(type)}${this.next()},${members}}\n\n`;
  }

  /**
   * Prepares events that differ in one text only. @param before JSON members without braces, at
   * least one
   */
  deltas(type: string, before: JsonRecord, after = ""): DeltaWriter {
    return new DeltaWriter(this, {
      head: head(type),
      tail: `,${membersOf(before)},"delta":`,
      end: `${after}}\n\n`,
    });
  }

  /** The event for a failure, in both forms that clients read. */
  error(error: GatewayError): string {
    const body = errorBody(error)["error"] as JsonRecord;
    const { code, message, param } = body;
    return this.event("error", membersOf({ code, message, param, error: body }));
  }
}

/** The members of an object as JSON, without the braces. */
export function membersOf(record: JsonRecord): string {
  return writeJson(record).slice(1, -1);
}

function head(type: string): string {
  return `event: ${type}\ndata: {"type":"${type}","sequence_number":`;
}

interface DeltaFrame {
  readonly head: string;
  readonly tail: string;
  readonly end: string;
}

/** Writes the deltas of one part. */
export class DeltaWriter {
  readonly #events: EventWriter;
  readonly #frame: DeltaFrame;

  constructor(events: EventWriter, frame: DeltaFrame) {
    this.#events = events;
    this.#frame = frame;
  }

  write(text: string): string {
    const { head: start, tail, end } = this.#frame;
    return start + this.#events.next() + tail + JSON.stringify(text) + end;
  }
}

/** Writes one part. */
export interface PartWriter {
  /** Opens the part. */
  begin(): string;
  /** Continues it. */
  delta(delta: PartDelta["delta"]): string;
  /** Ends it, complete or cut off. */
  end(status: ItemStatus): string;
}

/** An item of a streamed response. */
export interface ItemPlace {
  readonly events: EventWriter;
  readonly id: string;
  /** Index in the output. */
  readonly at: number;
  /** Receives the completed item as JSON. */
  readonly onItem: (at: number, json: string) => void;
}

/** The event for a new item. */
export function itemAdded({ events, at }: ItemPlace, item: JsonRecord | JsonText): string {
  return events.event("response.output_item.added", membersOf({ output_index: at, item }));
}

/** The event for a completed item. */
export function itemDone({ events, at, onItem }: ItemPlace, item: JsonRecord | JsonText): string {
  const json = writeJson(item);
  onItem(at, json);
  return events.event("response.output_item.done", `"output_index":${at},"item":${json}`);
}

/** Writes a call of a tool. */
export class CallWriter implements PartWriter {
  readonly #place: ItemPlace;
  readonly #callId: string;
  readonly #call: ToolCall;
  readonly #isCustom: boolean;
  readonly #deltas: DeltaWriter;
  #input = "";

  constructor(place: ItemPlace, call: ToolCall, callId: string) {
    this.#place = place;
    this.#call = call;
    this.#callId = callId;
    this.#isCustom = call.type === ToolType.CUSTOM;
    this.#deltas = place.events.deltas(`${this.#eventType}.delta`, this.#members);
  }

  begin(): string {
    const begun = itemAdded(this.#place, this.#item("", "in_progress"));
    return begun + this.#write(this.#call.input);
  }

  delta(delta: PartDelta["delta"]): string {
    return delta.case === "input" ? this.#write(delta.value) : "";
  }

  end(reached: ItemStatus): string {
    const status = callStatus(this.#call, this.#input, reached);
    // Clients parse the arguments even of tools without parameters.
    const isEmpty = this.#input === "" && !this.#isCustom && status === "completed";
    const rest = isEmpty ? this.#write("{}") : "";
    const whole = this.#isCustom
      ? { input: this.#input }
      : { name: this.#call.name, arguments: this.#input };
    const { events } = this.#place;
    const done = events.event(`${this.#eventType}.done`, membersOf({ ...this.#members, ...whole }));
    return rest + done + itemDone(this.#place, this.#item(this.#input, status));
  }

  get #eventType(): string {
    return this.#isCustom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  }

  get #members(): JsonRecord {
    return { item_id: this.#place.id, output_index: this.#place.at };
  }

  #write(input: string): string {
    if (input === "") return "";
    this.#input += input;
    return this.#deltas.write(input);
  }

  #item(input: string, status: ItemStatus): JsonRecord {
    const { id } = this.#place;
    return callItem({ id, callId: this.#callId, call: this.#call, input, status });
  }
}
