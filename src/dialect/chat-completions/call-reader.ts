/** The calls in a vendor's stream. They differ by `index` and may be under way at once. */
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { countAt, type JsonRecord, recordAt, textAt } from "../json.ts";
import { madeCallId } from "./decode-reply.ts";
import { partDelta, partEnd, partStart } from "./events.ts";
import { readInput } from "./message-content.ts";

/** A call under way. */
interface OpenCall {
  readonly id: string;
  readonly partIndex: number;
}

/** Reads the deltas of calls. */
export class CallReader {
  /** The reply's id, from which ids of calls are made where the vendor gives none. */
  replyId = "";
  readonly #nextPart: () => number;
  readonly #open: OpenCall[] = [];
  readonly #byIndex = new Map<number, OpenCall>();

  /** @param nextPart gives the number of the next part */
  constructor(nextPart: () => number) {
    this.#nextPart = nextPart;
  }

  /** How many calls there were. */
  get count(): number {
    return this.#open.length;
  }

  /** Takes one of `tool_calls`. */
  read(delta: JsonRecord, events: GenerateEvent[]): void {
    const custom = recordAt(delta, "custom");
    const called = custom ?? recordAt(delta, "function") ?? {};
    const call = this.#find(delta, called) ?? this.#begin(delta, events);
    const input = readInput(called, custom ? "input" : "arguments");
    if (input !== "") {
      events.push(partDelta(call.partIndex, { case: "input", value: input }));
    }
  }

  /** All calls are complete: the style does not tell of each. */
  close(events: GenerateEvent[]): void {
    for (const { partIndex } of this.#open) events.push(partEnd(partIndex));
  }

  /** Some vendors give no index, and some give every call the same: then a new id with a name is a new call. */
  #find(delta: JsonRecord, called: JsonRecord): OpenCall | undefined {
    const index = countAt(delta, "index");
    const call = index === undefined ? this.#open.at(-1) : this.#byIndex.get(index);
    const id = textAt(delta, "id");
    const isNew = id !== "" && id !== call?.id && textAt(called, "name") !== "";
    return isNew ? undefined : call;
  }

  #begin(delta: JsonRecord, events: GenerateEvent[]): OpenCall {
    const custom = recordAt(delta, "custom");
    const number = this.#open.length;
    const call: OpenCall = {
      id: textAt(delta, "id") || madeCallId(this.replyId, number),
      partIndex: this.#nextPart(),
    };
    this.#open.push(call);
    this.#byIndex.set(countAt(delta, "index") ?? number, call);
    const value = {
      $typeName: "uas.inference.v1.ToolCall" as const,
      id: call.id,
      name: textAt(custom ?? recordAt(delta, "function") ?? {}, "name"),
      type: custom ? ToolType.CUSTOM : ToolType.FUNCTION,
      input: "",
      namespace: "",
      itemId: "",
    };
    events.push(partStart(call.partIndex, { case: "toolCall", value }));
    return call;
  }
}
