/** Decodes a reply by chunks; a whole reply is a stream of one chunk. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type MediaPart,
  MediaType,
  type Part,
  type ToolCall,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { hash, randomUUID } from "node:crypto";
import { sealOf, type SealPlace } from "./reasoning.ts";
import { CitationReader } from "./citation.ts";
import { candidateOf, emptyReasoning, emptyText } from "./wire.ts";
import { readFailure } from "./errors.ts";
import { GeminiToolCount, UsageReader } from "./usage.ts";
import { generateEvent, partDelta, partEnd, partStart } from "../generate-events.ts";
import type { JsonSource } from "../../wire/json/source.ts";
import { isRecord, type JsonRecord, recordAt, recordsAt, textAt } from "../../wire/json/value.ts";
import { newPart } from "../turns/parts.ts";
import { reconciledEnd, type ReplyContents } from "../reply-end.ts";
import { type Finish, readFinish } from "./finish-reason.ts";

/** The state of one reply. */
export class ReplyReader {
  readonly #parts = new PartReader();
  #id: string | undefined;
  #callSeed = "";
  readonly #usage = new UsageReader();
  readonly #tools = new GeminiToolCount();
  #finish: Finish | undefined;
  #isOver = false;

  /** Whether an end or an error was returned: nothing follows. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** The usage reported so far. */
  get usage(): Usage | undefined {
    return this.#usage.usage;
  }

  /** Reads the next chunk. @param source of the chunk */
  read(chunk: JsonRecord, source: JsonSource, events: GenerateEvent[]): void {
    if (this.#isOver) return;
    const candidate = candidateOf(chunk);
    this.#tools.read(candidate);
    this.#usage.read(chunk, this.#tools.calls);
    const failure = readFailure(chunk, candidate);
    if (failure !== undefined) {
      this.#isOver = true;
      events.push(generateEvent({ case: "error", value: failure }));
      return;
    }
    this.#begin(chunk, events);
    this.#parts.read(candidate, { replyId: this.#callSeed, source }, events);
    this.#finish = readFinish(chunk, candidate) ?? this.#finish;
  }

  /**
   * Called after the last chunk. Emits the end if the vendor gave a reason; without one the reply
   * was cut off. Not earlier, since some models repeat the reason in every chunk, and usage may
   * follow it.
   */
  end(events: GenerateEvent[]): void {
    if (this.#isOver || this.#finish === undefined) return;
    this.#isOver = true;
    this.#parts.end(events);
    const { reason, detail } = this.#finish;
    const { usage } = this;
    // Gemini has no reason that announces a call.
    const stopReason = reconciledEnd(reason, this.#parts) ?? reason;
    events.push(
      generateEvent({
        case: "end",
        value: {
          $typeName: "uas.inference.v1.ReplyEnd",
          stopReason,
          stopSequence: "",
          stopDetail: detail,
          ...(usage && { usage }),
          serviceTier: "",
        },
      }),
    );
  }

  #begin(chunk: JsonRecord, events: GenerateEvent[]): void {
    if (this.#id !== undefined) return;
    this.#id = textAt(chunk, "responseId");
    // Without an ID, the IDs of calls would repeat those of other replies.
    this.#callSeed = this.#id || randomUUID();
    const { usage } = this;
    events.push(
      generateEvent({
        case: "start",
        value: {
          $typeName: "uas.inference.v1.ReplyStart",
          id: this.#id,
          model: textAt(chunk, "modelVersion"),
          created: 0n,
          ...(usage && { usage }),
        },
      }),
    );
  }
}

/** The chunk that a part is in. */
interface PartContext {
  /** Seed of the IDs of calls that have none. */
  readonly replyId: string;
  readonly source: JsonSource;
}

/** Kind of the open part. */
type OpenPart = "text" | "reasoning" | "call";

/** Reads the parts of one reply, in order. */
class PartReader implements ReplyContents {
  /** Number of parts so far. */
  #count = 0;
  #open: OpenPart | undefined;
  /** Whether the open call has its input. */
  #hasInput = false;
  readonly #callIds = new Set<string>();
  readonly #citations = new CitationReader();
  /**
   * Signatures of the open text. They follow it, but sources that come later still belong to it.
   */
  #signatures: string[] = [];

  readonly hasRefusal = false;

  /** Whether the model called a function. */
  get hasCalls(): boolean {
    return this.#callIds.size > 0;
  }

  get hasContent(): boolean {
    return this.#count > 0;
  }

  /** Reads the parts of a candidate. */
  read(candidate: JsonRecord, context: PartContext, events: GenerateEvent[]): void {
    this.#citations.read(candidate, context.source);
    const content = recordAt(candidate, "content") ?? {};
    for (const part of recordsAt(content, "parts")) this.#part(part, context, events);
    if (this.#open === "text") this.#cite(events);
  }

  /** Ends the reply. Sources that no text follows or precedes get an empty one. */
  end(events: GenerateEvent[]): void {
    if (this.#citations.isWaiting) this.#begin("text", events);
    this.#close(events);
  }

  #part(part: JsonRecord, context: PartContext, events: GenerateEvent[]): void {
    const { text } = part;
    const { functionCall: call, inlineData: blob } = part;
    const isThought = part["thought"] === true;
    const signature = textAt(part, "thoughtSignature");
    const hasText = typeof text === "string" && text !== "";
    if (hasText) this.#text(isThought ? "reasoning" : "text", text, events);
    if (hasMembers(call)) {
      if (signature !== "") this.#seal(signature, "call", events);
      this.#call(call, context, events);
      return;
    }
    // Images made while thinking are not part of the reply.
    if (hasMembers(blob)) {
      if (isThought) return;
      this.#whole({ case: "media", value: mediaOf(blob) }, events);
    } else if (!hasText && !isThought) {
      const type = Object.keys(part).find((name) => hasMembers(part[name]));
      // Its signature is in it.
      if (type !== undefined) return this.#opaque(context.source.textOf(part), type, events);
    }
    const place = isThought && typeof text === "string" ? "thought" : "content";
    if (signature !== "") this.#seal(signature, place, events);
  }

  #text(kind: "text" | "reasoning", text: string, events: GenerateEvent[]): void {
    // A signature is sent back if it was: between the texts.
    if (this.#signatures.length > 0) this.#close(events);
    this.#begin(kind, events);
    this.#delta({ case: "text", value: text }, events);
  }

  /**
   * A seal of a call or thought belongs to the reasoning before it; a seal of a text belongs to
   * reasoning after it.
   */
  #seal(signature: string, place: SealPlace, events: GenerateEvent[]): void {
    if (place === "content" && this.#open === "text") {
      this.#signatures.push(signature);
      return;
    }
    if (place === "content") this.#close(events);
    this.#begin("reasoning", events);
    this.#delta({ case: "seal", value: sealOf(signature, place) }, events);
    this.#close(events);
  }

  #begin(kind: "text" | "reasoning", events: GenerateEvent[]): void {
    if (this.#open === kind) return;
    this.#close(events);
    events.push(partStart(this.#count, newPart(kind === "text" ? emptyText() : emptyReasoning())));
    this.#count++;
    this.#open = kind;
  }

  /** Ends the open part. */
  #close(events: GenerateEvent[]): void {
    const open = this.#open;
    if (open === undefined) return;
    if (open === "text") this.#cite(events);
    if (open === "call" && !this.#hasInput) this.#delta({ case: "input", value: "{}" }, events);
    this.#open = undefined;
    events.push(partEnd(this.#count - 1));
    const signatures = this.#signatures;
    this.#signatures = [];
    for (const signature of signatures) this.#seal(signature, "content", events);
  }

  #delta(delta: PartDelta["delta"], events: GenerateEvent[]): void {
    events.push(partDelta(this.#count - 1, delta));
  }

  /** A call stays open, because some vendors send its name and its arguments in separate parts. */
  #call(call: JsonRecord, { replyId, source }: PartContext, events: GenerateEvent[]): void {
    const name = textAt(call, "name");
    const args = recordAt(call, "args");
    const isMore = name === "" && this.#open === "call";
    if (name === "" && !isMore && !hasMembers(args)) return;
    if (!isMore) this.#beginCall(name, this.#callId(textAt(call, "id"), replyId), events);
    if (!hasMembers(args) || this.#hasInput) return;
    this.#hasInput = true;
    this.#delta({ case: "input", value: source.textOf(args) }, events);
  }

  #beginCall(name: string, id: string, events: GenerateEvent[]): void {
    this.#close(events);
    const value: ToolCall = {
      $typeName: "uas.inference.v1.ToolCall",
      id,
      name,
      type: ToolType.FUNCTION,
      input: "",
      namespace: "",
      itemId: "",
    };
    events.push(partStart(this.#count++, newPart({ case: "toolCall", value })));
    this.#open = "call";
    this.#hasInput = false;
  }

  /** Returns the vendor's ID, unless it is missing or was used by an earlier call of the reply. */
  #callId(given: string, replyId: string): string {
    const isNew = given !== "" && !this.#callIds.has(given);
    const id = isNew ? given : callId([replyId, this.#callIds.size]);
    this.#callIds.add(id);
    return id;
  }

  #opaque(json: string, type: string, events: GenerateEvent[]): void {
    const value = { $typeName: "uas.inference.v1.OpaquePart", dialect: Dialect.GEMINI, type, json };
    this.#whole({ case: "opaque", value } as Part["kind"], events);
  }

  #whole(kind: Part["kind"], events: GenerateEvent[]): void {
    this.#close(events);
    events.push(partStart(this.#count, newPart(kind)), partEnd(this.#count));
    this.#count++;
  }

  #cite(events: GenerateEvent[]): void {
    for (const value of this.#citations.take()) this.#delta({ case: "citation", value }, events);
  }
}

/** Whether a value is an object with members: some vendors write empty ones for what is absent. */
function hasMembers(value: unknown): value is JsonRecord {
  return isRecord(value) && Object.keys(value).length > 0;
}

/** An id that is unique to a call, and the same each time the same reply is read. */
function callId(of: ReadonlyArray<string | number>): string {
  return `call_${hash("sha256", JSON.stringify(of), "hex").slice(0, 24)}`;
}

function mediaOf(blob: JsonRecord): MediaPart {
  const mimeType = textAt(blob, "mimeType");
  const [family] = mimeType.split("/");
  const type =
    family === "image"
      ? MediaType.IMAGE
      : family === "audio"
        ? MediaType.AUDIO
        : MediaType.DOCUMENT;
  return {
    $typeName: "uas.inference.v1.MediaPart",
    type,
    mimeType,
    source: { case: "base64", value: textAt(blob, "data") },
    detail: "",
    filename: "",
    title: "",
    context: "",
    citations: false,
  };
}
