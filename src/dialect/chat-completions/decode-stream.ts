/** Decodes a vendor's streamed reply. */
import { ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  type ReplyEnd,
  StopReason,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { decodeCitation } from "./citation.ts";
import { readInput } from "./decode-content.ts";
import { readText } from "./wire.ts";
import { readReasoning, sealOf } from "./reasoning.ts";
import { generatedCallId } from "./decode-reply.ts";
import { decodeFinishReason, isFailureReason } from "./finish-reason.ts";
import { decodeUsage } from "./usage.ts";
import { midStreamCode, readVendorError } from "./errors.ts";
import { type StreamDecoder } from "../codec.ts";
import { JsonSource } from "../json/source.ts";
import {
  UnreadableReplyError,
  countAt,
  isRecord,
  parseRecord,
  recordAt,
  recordsAt,
  textAt,
  type JsonRecord,
} from "../json/value.ts";
import { generateEvent, partDelta, partEnd, partStart } from "../generate-events.ts";
import { newPart } from "../parts.ts";
import { EventDataReader, type UnfinishedEvent } from "../sse/event-stream.ts";

/** Implements {@link VendorCodec.decodeStream}. */
export class ChatStreamDecoder implements StreamDecoder {
  readonly #data = new EventDataReader();
  readonly #reader = new ChunkReader();

  get unfinished(): UnfinishedEvent {
    return this.#data.unfinished;
  }

  get usage(): Usage | undefined {
    return this.#reader.usage;
  }

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    const events: GenerateEvent[] = [];
    this.#data.read(pieces, (data) => this.#onData(data, events));
    return events;
  }

  end(): GenerateEvent[] {
    const events = this.#isWhole() ? this.push([Buffer.from("\n\n")]) : [];
    this.#reader.close(events);
    return events;
  }

  /** Whether the remaining bytes are an event that only lacks its end, rather than one that was cut. */
  #isWhole(): boolean {
    const data = /^data: ?(.*)$/m.exec(this.#data.rest?.toString("utf8").trimEnd() ?? "")?.[1];
    return data === "[DONE]" || parseRecord(data ?? "") !== undefined;
  }

  #onData(data: string, events: GenerateEvent[]): void {
    if (this.#reader.isDone) return;
    if (data.trim() === "[DONE]") this.#reader.finish(events);
    else {
      const chunk = parseChunk(data);
      this.#reader.read(chunk, new JsonSource(data, chunk), events);
    }
  }
}

function parseChunk(data: string): JsonRecord {
  let chunk: unknown;
  try {
    chunk = JSON.parse(data);
  } catch (error) {
    throw new UnreadableReplyError("an event of the vendor's stream is not JSON", { cause: error });
  }
  if (!isRecord(chunk)) throw new UnreadableReplyError("an event of the stream is not an object");
  return chunk;
}

/** The kinds of parts with text deltas. */
type TextKind = "text" | "reasoning" | "refusal";

/** Reads chunks in their order. */
class ChunkReader {
  #isStarted = false;
  #isEnded = false;
  #finishReason: string | undefined;
  #stopSequence = "";
  #serviceTier = "";
  #usage: Usage | undefined;
  #parts = 0;
  /** The open part that is no call. */
  #open: TextKind | undefined;
  #openIndex = 0;
  #reasoningMember = "";
  #hasRefusal = false;
  /** The text of the current chunk. */
  #source = new JsonSource("{}", {});
  readonly #calls = new CallReader(() => this.#parts++);

  /** Whether the reply has ended or failed; later chunks are ignored. */
  get isDone(): boolean {
    return this.#isEnded;
  }

  /** What was reported so far. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Takes a chunk. @param source of the chunk */
  read(chunk: JsonRecord, source: JsonSource, events: GenerateEvent[]): void {
    this.#source = source;
    const [choice] = recordsAt(chunk, "choices");
    if (choice === undefined || "error" in chunk) {
      const failure = readVendorError(chunk);
      if (failure !== undefined) {
        return this.#fail(events, midStreamCode(failure), failure.message);
      }
    }
    const { usage } = chunk;
    if (isRecord(usage)) this.#usage = decodeUsage(usage) ?? this.#usage;
    this.#serviceTier = textAt(chunk, "service_tier") || this.#serviceTier;
    if (choice !== undefined) this.#onChoice(chunk, choice, events);
    // Vendors report usage in a chunk of its own, the last one.
    else if (this.#finishReason !== undefined && this.#usage !== undefined) this.#end(events);
  }

  /** Called at the vendor's end mark. */
  finish(events: GenerateEvent[]): void {
    if (!this.#isEnded && this.#isStarted) this.#end(events);
  }

  /** Called after the vendor closed the stream. Without a finish reason it was cut off. */
  close(events: GenerateEvent[]): void {
    if (this.#finishReason !== undefined) this.finish(events);
  }

  #onChoice(chunk: JsonRecord, choice: JsonRecord, events: GenerateEvent[]): void {
    // Further choices were not requested.
    if (countAt(choice, "index") !== undefined && choice["index"] !== 0) return;
    if (!this.#isStarted) this.#start(chunk, events);
    const delta = recordAt(choice, "delta") ?? recordAt(choice, "message");
    if (delta !== undefined) this.#onDelta(delta, events);
    const reason = textAt(choice, "finish_reason");
    if (reason === "") return;
    if (isFailureReason(reason)) {
      const code = midStreamCode({ code: reason, message: "" });
      return this.#fail(events, code, `The model's vendor ended the reply in "${reason}"`);
    }
    this.#finishReason = reason;
    this.#stopSequence = textAt(choice, "stop_reason");
  }

  #start(chunk: JsonRecord, events: GenerateEvent[]): void {
    this.#isStarted = true;
    const id = textAt(chunk, "id");
    this.#calls.replyId = id;
    const start = {
      $typeName: "uas.inference.v1.ReplyStart" as const,
      id,
      model: textAt(chunk, "model"),
      created: BigInt(countAt(chunk, "created") ?? 0),
    };
    events.push(generateEvent({ case: "start", value: start }));
  }

  #onDelta(delta: JsonRecord, events: GenerateEvent[]): void {
    const reasoning = readReasoning(delta);
    if (reasoning !== undefined) {
      this.#reasoningMember = reasoning.member;
      this.#onText("reasoning", reasoning.text, events);
    }
    const text = readText(delta);
    if (text !== "") this.#onText("text", text, events);
    const refusal = textAt(delta, "refusal");
    if (refusal !== "") {
      this.#hasRefusal = true;
      this.#onText("refusal", refusal, events);
    }
    if (Array.isArray(delta["annotations"])) this.#onAnnotations(delta, events);
    if (Array.isArray(delta["tool_calls"])) {
      this.#closeText(events);
      for (const call of recordsAt(delta, "tool_calls"))
        this.#calls.read(call, this.#source, events);
    }
    const legacy = recordAt(delta, "function_call");
    if (legacy !== undefined) {
      this.#closeText(events);
      this.#calls.read({ index: 0, function: legacy }, this.#source, events);
    }
  }

  #onText(kind: TextKind, text: string, events: GenerateEvent[]): void {
    if (this.#open !== kind) this.#openText(kind, events);
    events.push(partDelta(this.#openIndex, { case: "text", value: text }));
  }

  #openText(kind: TextKind, events: GenerateEvent[]): void {
    this.#closeText(events);
    this.#open = kind;
    this.#openIndex = this.#parts++;
    events.push(partStart(this.#openIndex, newPart(emptyPart(kind))));
  }

  #closeText(events: GenerateEvent[]): void {
    if (this.#open === undefined) return;
    if (this.#open === "reasoning") {
      const value = sealOf(this.#reasoningMember);
      events.push(partDelta(this.#openIndex, { case: "seal", value }));
    }
    events.push(partEnd(this.#openIndex));
    this.#open = undefined;
  }

  #onAnnotations(delta: JsonRecord, events: GenerateEvent[]): void {
    for (const annotation of recordsAt(delta, "annotations")) {
      if (this.#open !== "text") this.#openText("text", events);
      const value = decodeCitation(annotation, this.#source);
      events.push(partDelta(this.#openIndex, { case: "citation", value }));
    }
  }

  #end(events: GenerateEvent[]): void {
    this.#isEnded = true;
    this.#closeText(events);
    this.#calls.close(events);
    const contents = { hasCalls: this.#calls.count > 0, hasRefusal: this.#hasRefusal };
    const reason = decodeFinishReason(this.#finishReason ?? "", contents);
    const isStopped = this.#stopSequence !== "" && reason === StopReason.END;
    const value: ReplyEnd = {
      $typeName: "uas.inference.v1.ReplyEnd",
      stopReason: isStopped ? StopReason.STOP_SEQUENCE : reason,
      stopSequence: isStopped ? this.#stopSequence : "",
      stopDetail: "",
      serviceTier: this.#serviceTier,
    };
    if (this.#usage !== undefined) value.usage = this.#usage;
    events.push(generateEvent({ case: "end", value }));
  }

  #fail(events: GenerateEvent[], code: ReturnType<typeof midStreamCode>, message: string): void {
    this.#isEnded = true;
    const value = { $typeName: "uas.inference.v1.ReplyError" as const, code, message };
    events.push(generateEvent({ case: "error", value }));
  }
}

function emptyPart(kind: TextKind) {
  switch (kind) {
    case "text":
      return {
        case: kind,
        value: { $typeName: "uas.inference.v1.TextPart" as const, text: "", citations: [] },
      };
    case "refusal":
      return {
        case: kind,
        value: { $typeName: "uas.inference.v1.RefusalPart" as const, text: "" },
      };
    case "reasoning":
    default: {
      const $typeName = "uas.inference.v1.Reasoning" as const;
      return {
        case: "reasoning" as const,
        value: { $typeName, text: "", summaries: [], itemId: "" },
      };
    }
  }
}

/** An open call. */
interface OpenCall {
  readonly id: string;
  readonly partIndex: number;
}

/** Reads the deltas of calls. */
class CallReader {
  /** The reply's id; ids of calls are derived from it where the vendor provides none. */
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

  /** Takes one of `tool_calls`. @param source of the chunk that it is in */
  read(delta: JsonRecord, source: JsonSource, events: GenerateEvent[]): void {
    const custom = recordAt(delta, "custom");
    const called = custom ?? recordAt(delta, "function") ?? {};
    const call = this.#find(delta, called) ?? this.#begin(delta, events);
    const input = readInput(called, custom ? "input" : "arguments", source);
    if (input !== "") {
      events.push(partDelta(call.partIndex, { case: "input", value: input }));
    }
  }

  /** Ends all calls; the style does not mark the end of each. */
  close(events: GenerateEvent[]): void {
    for (const { partIndex } of this.#open) events.push(partEnd(partIndex));
  }

  /** Some vendors provide no index, or the same for every call; then a new id with a name starts a new call. */
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
      id: textAt(delta, "id") || generatedCallId(this.replyId, number),
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
    events.push(partStart(call.partIndex, newPart({ case: "toolCall", value })));
    return call;
  }
}
