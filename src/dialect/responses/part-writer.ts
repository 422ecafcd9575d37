/** The items of a streamed response, and calls of tools among them. */
import { type ToolCall, ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { JsonRecord } from "../json.ts";
import { type DeltaWriter, type EventWriter, membersOf } from "./event-writer.ts";
import { callItem, type ItemStatus } from "./output-json.ts";

/** A part while it is written. */
export interface PartWriter {
  /** Whatever opens it. */
  begin(): string;
  /** It goes on. */
  delta(delta: PartDelta["delta"]): string;
  /** It is complete, or cut. */
  end(status: ItemStatus): string;
}

/** An item of a streamed response. */
export interface ItemPlace {
  readonly events: EventWriter;
  readonly id: string;
  /** Its place in the output. */
  readonly at: number;
  /** Takes the complete item, as JSON. */
  readonly onItem: (at: number, json: string) => void;
}

/** An item begins. */
export function itemAdded({ events, at }: ItemPlace, item: JsonRecord): string {
  return events.event("response.output_item.added", membersOf({ output_index: at, item }));
}

/** An item is complete. */
export function itemDone({ events, at, onItem }: ItemPlace, item: JsonRecord): string {
  const json = JSON.stringify(item);
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

  end(status: ItemStatus): string {
    // Clients parse it, also where the tool takes nothing.
    const rest = this.#input === "" && !this.#isCustom ? this.#write("{}") : "";
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
