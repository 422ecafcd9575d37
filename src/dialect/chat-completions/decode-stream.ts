/** Decodes a vendor's streamed reply. */
import { ErrorCode } from "../../../gen/uas/error/v1/error_pb.ts";
import {
  type GenerateEvent,
  type ReplyEnd,
  StopReason,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { decodeCitation } from "./citation.ts";
import { callsIn, readText } from "./wire.ts";
import { readReasoning, sealOf } from "./reasoning.ts";
import { decodeFinishReason, isFailureReason } from "./finish-reason.ts";
import { grownUsage } from "../features/usage.ts";
import { MessageMembers, pushCarrier } from "./opaque-members.ts";
import { CallReader } from "./stream-calls.ts";
import { chunkUsage } from "./usage.ts";
import { midStreamCode, readVendorError } from "./errors.ts";
import { type StreamDecoder } from "../codec.ts";
import { JsonSource } from "../../wire/json/source.ts";
import {
  UnreadableReplyError,
  countAt,
  isRecord,
  recordAt,
  recordsAt,
  textAt,
  type JsonRecord,
} from "../../wire/json/value.ts";
import { generateEvent, partDelta, partEnd, partStart } from "../generate-events.ts";
import { newPart } from "../turns/parts.ts";
import { missingCall, reconciledEnd } from "../reply-end.ts";
import { EventDataReader, missingEnd, type UnfinishedEvent } from "../../wire/sse/event-stream.ts";

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
    const missing = missingEnd(this.#data.rest);
    const events = missing === undefined ? [] : this.push([missing]);
    this.#reader.close(events);
    return events;
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

/** The `object` of a whole reply. */
const wholeObject = "chat.completion";

/** The kinds of parts with text deltas. */
type TextKind = "text" | "reasoning" | "refusal";

/** Reads chunks in their order, or a whole reply. */
export class ChunkReader {
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
  /** The text of the current chunk. */
  #source = new JsonSource("{}", {});
  /** All texts so far: a whole message at the end of a stream repeats them. */
  readonly #said = { text: "", reasoning: "", refusal: "" };
  #citations = 0;
  readonly #members = new MessageMembers();
  /** Whether deltas have come: a message then is the whole one. */
  #hasDeltas = false;
  readonly #nextPart = (): number => this.#parts++;
  readonly #calls = new CallReader(this.#nextPart);

  /** Whether the reply has ended or failed; later chunks are ignored. */
  get isDone(): boolean {
    return this.#isEnded;
  }

  /** The usage reported so far. */
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
    this.#usage = grownUsage(this.#usage, chunkUsage(chunk));
    this.#serviceTier = textAt(chunk, "service_tier") || this.#serviceTier;
    if (this.#usage && this.#serviceTier) this.#usage.serviceTier = this.#serviceTier;
    // Vendors report usage in separate chunks, so the reply is read to its end.
    if (choice !== undefined) this.#onChoice(chunk, choice, events);
  }

  /** Takes a whole reply. @param source of the reply */
  readWhole(reply: JsonRecord, source: JsonSource, events: GenerateEvent[]): void {
    const [first] = recordsAt(reply, "choices");
    const choices = [{ ...first, index: 0 }];
    this.read({ ...reply, object: wholeObject, choices }, source, events);
    this.finish(events);
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
    const delta = recordAt(choice, "delta");
    if (delta !== undefined) this.#onDelta(delta, events);
    const reason = textAt(choice, "finish_reason");
    const message = recordAt(choice, "message");
    const isLast = textAt(chunk, "object") === wholeObject || reason !== "";
    if (message !== undefined) this.#onMessage(message, isLast, events);
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
    const { reasoning, text, refusal } = this.#textsOf(delta);
    this.#members.add(delta, this.#source, false);
    this.#onText("reasoning", reasoning, events);
    this.#onText("text", text, events);
    this.#onText("refusal", refusal, events);
    this.#onAnnotations(recordsAt(delta, "annotations"), events);
    const calls = callsIn(delta);
    for (const call of calls) {
      this.#closeText(events);
      this.#carryMembers(events);
      this.#calls.read(call, this.#source, events);
    }
    this.#hasDeltas ||= calls.length > 0 || reasoning + text + refusal !== "";
  }

  /**
   * Adds a message of a stream: some vendors write one in place of each delta, others end the
   * stream with the whole message. A whole message adds what was missing in the deltas.
   */
  #onMessage(message: JsonRecord, isLast: boolean, events: GenerateEvent[]): void {
    const texts = this.#textsOf(message);
    this.#members.add(message, this.#source, isLast || this.#hasDeltas);
    for (const kind of ["reasoning", "text", "refusal"] as const) {
      const said = this.#said[kind];
      const text = texts[kind];
      const isRepeated = (isLast || this.#hasDeltas) && text.startsWith(said);
      // A whole text may differ in its white space from the deltas, which clients have already.
      if (isRepeated) this.#onText(kind, text.slice(said.length), events);
      else if (!this.#hasDeltas || said === "") this.#onText(kind, text, events);
    }
    const annotations = recordsAt(message, "annotations");
    this.#onAnnotations(isLast ? annotations.slice(this.#citations) : annotations, events);
    const calls = callsIn(message);
    if (calls.length > 0) {
      this.#closeText(events);
      this.#carryMembers(events);
    }
    if (isLast || this.#hasDeltas) this.#calls.whole(calls, this.#source, events);
    else for (const call of calls) this.#calls.read(call, this.#source, events);
  }

  #textsOf(said: JsonRecord): Record<TextKind, string> {
    const reasoning = readReasoning(said);
    if (reasoning !== undefined) this.#reasoningMember = reasoning.member;
    const refusal = textAt(said, "refusal");
    return { reasoning: reasoning?.text ?? "", text: readText(said), refusal };
  }

  /** Adds the members of the message itself that must return to the vendor. */
  #carryMembers(events: GenerateEvent[]): void {
    pushCarrier(this.#nextPart, { callId: "", members: this.#members.take() }, events);
  }

  #onText(kind: TextKind, text: string, events: GenerateEvent[]): void {
    if (text === "") return;
    this.#said[kind] += text;
    if (this.#open !== kind) this.#openText(kind, events);
    events.push(partDelta(this.#openIndex, { case: "text", value: text }));
  }

  #openText(kind: TextKind, events: GenerateEvent[]): void {
    this.#closeText(events);
    // They come with the reasoning: clients get them behind it.
    if (kind !== "reasoning") this.#carryMembers(events);
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

  #onAnnotations(annotations: readonly JsonRecord[], events: GenerateEvent[]): void {
    this.#citations += annotations.length;
    for (const annotation of annotations) {
      if (this.#open !== "text") this.#openText("text", events);
      const value = decodeCitation(annotation, this.#source);
      events.push(partDelta(this.#openIndex, { case: "citation", value }));
    }
  }

  #end(events: GenerateEvent[]): void {
    this.#isEnded = true;
    this.#closeText(events);
    this.#calls.close(events);
    this.#carryMembers(events);
    const reason = reconciledEnd(decodeFinishReason(this.#finishReason ?? ""), {
      hasCalls: this.#calls.count > 0,
      hasRefusal: this.#said.refusal !== "",
      hasContent: this.#calls.count > 0 || this.#said.text + this.#said.refusal !== "",
    });
    const isCut = reason === StopReason.LENGTH;
    if (reason === undefined || (this.#calls.hasNameless && !isCut)) {
      return this.#fail(events, ErrorCode.UPSTREAM_ERROR, missingCall);
    }
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
