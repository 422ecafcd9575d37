/** Decodes the content blocks of a vendor's stream into events of parts. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Citation,
  type Part,
  PartSchema,
  ReasoningSealSchema,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import {
  citationDelta,
  inputDelta,
  partEnd,
  partStart,
  sealDelta,
  textDelta,
} from "../generate-events.ts";
import { JsonSource, changeMembers, withoutSpace } from "../../wire/json/source.ts";
import {
  countAt,
  isRecord,
  type JsonRecord,
  parseRecord,
  recordAt,
  textAt,
} from "../../wire/json/value.ts";
import { StreamedInput } from "../streamed-input.ts";
import { readCitation } from "./citation.ts";
import { readBlock, readInput } from "./decode-reply.ts";

/** A block that is open. */
interface OpenBlock {
  /** The block's start event, and its text. */
  readonly start: JsonRecord;
  readonly source: JsonSource;
  /** Whether it has no part yet: it is held back until it is whole. */
  readonly isHeld: boolean;
  readonly input: StreamedInput;
}

/** Reads the events of blocks; each method adds what it makes of one to `events`. */
export class BlockDecoder {
  readonly #open = new Map<number, OpenBlock>();

  /** @param data the text of the event */
  start(record: JsonRecord, data: string, events: GenerateEvent[]): void {
    const index = countAt(record, "index") ?? 0;
    this.#stop(index, events);
    const start = recordAt(record, "content_block") ?? {};
    const type = textAt(start, "type");
    const isHeld = !streamed.has(type);
    const source = new JsonSource(data, record);
    this.#open.set(index, { start, source, isHeld, input: new StreamedInput() });
    if (isHeld) return;
    if (type === "tool_use") {
      const call = { id: textAt(start, "id"), name: textAt(start, "name"), input: "" };
      const value = { ...call, type: ToolType.FUNCTION };
      events.push(partStart(index, create(PartSchema, { kind: { case: "toolCall", value } })));
      return;
    }
    if (type === "redacted_thinking") {
      events.push(partStart(index, readBlock(start, source)));
      return;
    }
    startText(index, start, events);
  }

  /** @param data the text of the event */
  delta(record: JsonRecord, data: string, events: GenerateEvent[]): void {
    const index = countAt(record, "index") ?? 0;
    const delta = record["delta"];
    if (!isRecord(delta)) return;
    this.#startMissing(index, textAt(delta, "type"), events);
    switch (delta["type"]) {
      case "text_delta":
        pushText(index, textAt(delta, "text"), events);
        break;
      case "thinking_delta":
        pushText(index, textAt(delta, "thinking"), events);
        break;
      case "input_json_delta":
        this.#onInput(index, textAt(delta, "partial_json"), events);
        break;
      case "signature_delta":
        pushSeal(index, textAt(delta, "signature"), events);
        break;
      case "citations_delta":
        events.push(citationDelta(index, citationOf(delta, new JsonSource(data, record))));
        break;
      default:
      // Handles the end of a part: a part that is not known to be whole is incomplete without it.
    }
  }

  stop(record: JsonRecord, events: GenerateEvent[]): void {
    this.#stop(countAt(record, "index") ?? 0, events);
  }

  /** Ends the blocks that are open: some vendors do not. */
  stopAll(events: GenerateEvent[]): void {
    for (const index of this.#open.keys()) this.#stop(index, events);
  }

  #stop(index: number, events: GenerateEvent[]): void {
    const block = this.#open.get(index);
    if (block === undefined) return;
    this.#open.delete(index);
    const { input } = block;
    if (block.isHeld) events.push(partStart(index, wholePart(block)));
    else if (input.text === "") pushWholeInput(index, block, events);
    else {
      input.complete();
      pushInput(index, input, events);
    }
    events.push(partEnd(index));
  }

  /** Begins a block of text whose start the vendor left out. */
  #startMissing(index: number, deltaType: string, events: GenerateEvent[]): void {
    const type = missingStarts.get(deltaType);
    if (type === undefined || this.#open.has(index)) return;
    const record = { index, content_block: { type } };
    this.start(record, JSON.stringify(record), events);
  }

  #onInput(index: number, text: string, events: GenerateEvent[]): void {
    const block = this.#open.get(index);
    if (block === undefined || text === "") return;
    block.input.add(text);
    if (!block.isHeld) pushInput(index, block.input, events);
  }
}

/**
 * Types of blocks by the deltas that are specific to them. A call cannot begin without its start.
 */
const missingStarts: ReadonlyMap<string, string> = new Map([
  ["text_delta", "text"],
  ["thinking_delta", "thinking"],
]);

function pushInput(index: number, input: StreamedInput, events: GenerateEvent[]): void {
  const rest = input.take();
  if (rest !== "") events.push(inputDelta(index, rest));
}

/** The types whose parts begin with their block. */
const streamed: ReadonlySet<string> = new Set([
  "text",
  "thinking",
  "tool_use",
  "redacted_thinking",
]);

/** Text and reasoning begin empty; some vendors put the first of them into the start. */
function startText(index: number, start: JsonRecord, events: GenerateEvent[]): void {
  const isText = start["type"] === "text";
  const kind = isText
    ? ({ case: "text", value: {} } as const)
    : ({ case: "reasoning", value: {} } as const);
  events.push(partStart(index, create(PartSchema, { kind })));
  pushText(index, textAt(start, isText ? "text" : "thinking"), events);
  pushSeal(index, textAt(start, "signature"), events);
}

function pushText(index: number, text: string, events: GenerateEvent[]): void {
  if (text !== "") events.push(textDelta(index, text));
}

function pushSeal(index: number, signature: string, events: GenerateEvent[]): void {
  if (signature === "") return;
  const seal = create(ReasoningSealSchema, { dialect: Dialect.MESSAGES, signature });
  events.push(sealDelta(index, seal));
}

/** Pushes the input of a call that its start contained, if no delta did. */
function pushWholeInput(index: number, block: OpenBlock, events: GenerateEvent[]): void {
  const { start, source } = block;
  if (start["type"] === "tool_use") events.push(inputDelta(index, readInput(start, source)));
}

/** The part of a block as it would be in a whole reply: with the input that came in deltas. */
function wholePart({ start, source, input: { text: input } }: OpenBlock): Part {
  if (input === "") return readBlock(start, source);
  const json = parseRecord(input) === undefined ? JSON.stringify(input) : withoutSpace(input);
  const text = changeMembers(source.textOf(start), { input: json });
  const block = parseRecord(text) ?? start;
  return readBlock(block, new JsonSource(text, block));
}

function citationOf(delta: JsonRecord, source: JsonSource): Citation {
  const citation = recordAt(delta, "citation") ?? {};
  return readCitation(citation, source.textOf(citation));
}
