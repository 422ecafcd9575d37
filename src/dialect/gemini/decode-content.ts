/** Decodes a reply by chunks; a whole reply is a stream of one chunk. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type MediaPart,
  MediaType,
  type Part,
  type ToolCall,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import {
  type GenerateEvent,
  type PartDelta,
  StopReason,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { hash } from "node:crypto";
import { sealOf, type SealPlace } from "./reasoning.ts";
import { candidateOf, emptyReasoning, emptyText } from "./wire.ts";
import { readFailure } from "./errors.ts";
import { GeminiToolCount, readUsage } from "./usage.ts";
import { generateEvent, partDelta, partEnd, partStart } from "../generate-events.ts";
import { isRecord, type JsonRecord, recordAt, recordsAt, textAt } from "../json/value.ts";
import { newPart } from "../parts.ts";

/** The state of one reply. */
export class ReplyReader {
  readonly #parts = new PartReader();
  #id: string | undefined;
  #usage: Usage | undefined;
  readonly #tools = new GeminiToolCount();
  #finish: Finish | undefined;
  #isOver = false;

  /** Whether an end or an error was told: nothing follows. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** What was reported so far. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Reads the next chunk. */
  read(chunk: JsonRecord, events: GenerateEvent[]): void {
    if (this.#isOver) return;
    const candidate = candidateOf(chunk);
    this.#tools.read(candidate);
    this.#usage = readUsage(chunk, this.#tools.calls) ?? this.#usage;
    const failure = readFailure(chunk, candidate);
    if (failure !== undefined) {
      this.#isOver = true;
      events.push(generateEvent({ case: "error", value: failure }));
      return;
    }
    this.#begin(chunk, events);
    this.#parts.read(candidate, this.#id ?? "", events);
    this.#finish = readFinish(chunk, candidate) ?? this.#finish;
  }

  /**
   * Called after the last chunk. Emits the end where the vendor gave a reason; without one the reply was cut off.
   * Not earlier, since some models repeat the reason in every chunk, and usage may follow it.
   */
  end(events: GenerateEvent[]): void {
    if (this.#isOver || this.#finish === undefined) return;
    this.#isOver = true;
    this.#parts.close(events);
    const { reason, detail } = this.#finish;
    const isCall = reason === StopReason.END && this.#parts.hasCalls;
    events.push(
      generateEvent({
        case: "end",
        value: {
          $typeName: "uas.inference.v1.ReplyEnd",
          stopReason: isCall ? StopReason.TOOL_CALLS : reason,
          stopSequence: "",
          stopDetail: detail,
          ...(this.#usage && { usage: this.#usage }),
          serviceTier: "",
        },
      }),
    );
  }

  #begin(chunk: JsonRecord, events: GenerateEvent[]): void {
    if (this.#id !== undefined) return;
    this.#id = textAt(chunk, "responseId");
    events.push(
      generateEvent({
        case: "start",
        value: {
          $typeName: "uas.inference.v1.ReplyStart",
          id: this.#id,
          model: textAt(chunk, "modelVersion"),
          created: 0n,
          ...(this.#usage && { usage: this.#usage }),
        },
      }),
    );
  }
}

/** Reads the parts of one reply, in order. */
class PartReader {
  /** How many parts have begun. */
  #count = 0;
  /** The part that goes on: a text or a reasoning. */
  #open: "text" | "reasoning" | undefined;
  #calls = 0;
  readonly #cited = new Set<string>();

  /** Whether the model called a function. */
  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  /** Reads the parts of a candidate. @param replyId makes ids for calls that have none */
  read(candidate: JsonRecord, replyId: string, events: GenerateEvent[]): void {
    const content = recordAt(candidate, "content") ?? {};
    for (const part of recordsAt(content, "parts")) this.#part(part, replyId, events);
    this.#citations(candidate, events);
  }

  /** Ends the part that goes on. */
  close(events: GenerateEvent[]): void {
    if (this.#open === undefined) return;
    this.#open = undefined;
    events.push(partEnd(this.#count - 1));
  }

  #part(part: JsonRecord, replyId: string, events: GenerateEvent[]): void {
    const { text } = part;
    const signature = textAt(part, "thoughtSignature");
    if (typeof text === "string") {
      const isThought = part["thought"] === true;
      if (text !== "") this.#text(isThought ? "reasoning" : "text", text, events);
      const place = isThought ? "thought" : "content";
      if (signature !== "") this.#seal(signature, place, events);
      return;
    }
    // Images made while thinking are not part of the reply.
    if (part["thought"] === true) return;
    const call = recordAt(part, "functionCall");
    if (call !== undefined) {
      if (signature !== "") this.#seal(signature, "call", events);
      this.#call(call, replyId, events);
      return;
    }
    const blob = recordAt(part, "inlineData");
    if (blob !== undefined) this.#whole({ case: "media", value: mediaOf(blob) }, events);
    else this.#opaque(part, events);
    if (blob !== undefined && signature !== "") {
      this.#seal(signature, "content", events);
    }
  }

  #text(kind: "text" | "reasoning", text: string, events: GenerateEvent[]): void {
    this.#begin(kind, events);
    this.#delta({ case: "text", value: text }, events);
  }

  /** The seal of a call or thought belongs to the reasoning before it; that of a text, to reasoning after it. */
  #seal(signature: string, place: SealPlace, events: GenerateEvent[]): void {
    if (place === "content") this.close(events);
    this.#begin("reasoning", events);
    this.#delta({ case: "seal", value: sealOf(signature, place) }, events);
    this.close(events);
  }

  #begin(kind: "text" | "reasoning", events: GenerateEvent[]): void {
    if (this.#open === kind) return;
    this.close(events);
    events.push(partStart(this.#count, newPart(kind === "text" ? emptyText() : emptyReasoning())));
    this.#count++;
    this.#open = kind;
  }

  #delta(delta: PartDelta["delta"], events: GenerateEvent[]): void {
    events.push(partDelta(this.#count - 1, delta));
  }

  #call(call: JsonRecord, replyId: string, events: GenerateEvent[]): void {
    const name = textAt(call, "name");
    const input = JSON.stringify(recordAt(call, "args") ?? {});
    const id = textAt(call, "id") || callId([replyId, this.#calls, name, input]);
    this.#calls++;
    const value: ToolCall = {
      $typeName: "uas.inference.v1.ToolCall",
      id,
      name,
      type: ToolType.FUNCTION,
      input: "",
      namespace: "",
      itemId: "",
    };
    this.close(events);
    events.push(partStart(this.#count++, newPart({ case: "toolCall", value })));
    this.#delta({ case: "input", value: input }, events);
    events.push(partEnd(this.#count - 1));
  }

  #opaque(part: JsonRecord, events: GenerateEvent[]): void {
    const type = Object.keys(part).find((name) => isRecord(part[name]));
    // Empty, or only a signature: Gemini ends some streams like that.
    if (type === undefined) {
      const signature = textAt(part, "thoughtSignature");
      if (signature !== "") this.#seal(signature, "content", events);
      return;
    }
    const json = JSON.stringify(part);
    const value = { $typeName: "uas.inference.v1.OpaquePart", dialect: Dialect.GEMINI, type, json };
    this.#whole({ case: "opaque", value } as Part["kind"], events);
  }

  #whole(kind: Part["kind"], events: GenerateEvent[]): void {
    this.close(events);
    events.push(partStart(this.#count, newPart(kind)), partEnd(this.#count));
    this.#count++;
  }

  /** Sources: of texts that the model quoted, and of searches. They come late, and some of them again. */
  #citations(candidate: JsonRecord, events: GenerateEvent[]): void {
    const quoted = recordAt(candidate, "citationMetadata") ?? {};
    for (const list of ["citationSources", "citations"]) {
      for (const source of recordsAt(quoted, list)) this.#citation(source, source, events);
    }
    const grounding = recordAt(candidate, "groundingMetadata") ?? {};
    for (const chunk of recordsAt(grounding, "groundingChunks")) {
      const web = recordAt(chunk, "web");
      if (web !== undefined) this.#citation(chunk, web, events);
    }
  }

  #citation(whole: JsonRecord, source: JsonRecord, events: GenerateEvent[]): void {
    const json = JSON.stringify(whole);
    if (this.#open !== "text" || this.#cited.has(json)) return;
    this.#cited.add(json);
    const value = {
      $typeName: "uas.inference.v1.Citation",
      dialect: Dialect.GEMINI,
      json,
      url: textAt(source, "uri"),
      title: textAt(source, "title"),
    } as const;
    this.#delta({ case: "citation", value }, events);
  }
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

// Why a reply ended.

/** How a reply ended. */
interface Finish {
  readonly reason: StopReason;
  /** The vendor's explanation. Empty: none. */
  readonly detail: string;
}

const reasons: ReadonlyMap<string, StopReason> = new Map([
  ["STOP", StopReason.END],
  ["MAX_TOKENS", StopReason.LENGTH],
  ["CONTINUATION", StopReason.PAUSE],
  ["SAFETY", StopReason.CONTENT_FILTER],
  ["RECITATION", StopReason.CONTENT_FILTER],
  ["LANGUAGE", StopReason.CONTENT_FILTER],
  ["BLOCKLIST", StopReason.CONTENT_FILTER],
  ["PROHIBITED_CONTENT", StopReason.CONTENT_FILTER],
  ["SPII", StopReason.CONTENT_FILTER],
  ["IMAGE_SAFETY", StopReason.CONTENT_FILTER],
  ["IMAGE_PROHIBITED_CONTENT", StopReason.CONTENT_FILTER],
  ["IMAGE_RECITATION", StopReason.CONTENT_FILTER],
]);

/**
 * How the chunk says that the reply ends: by its candidate, or by the prompt's refusal.
 *
 * @returns `undefined`: it goes on
 */
function readFinish(chunk: JsonRecord, candidate: JsonRecord): Finish | undefined {
  const word = textAt(candidate, "finishReason");
  if (word !== "" && word !== "FINISH_REASON_UNSPECIFIED") {
    const reason = reasons.get(word) ?? StopReason.UNSPECIFIED;
    const isFiltered = reason === StopReason.CONTENT_FILTER;
    return { reason, detail: isFiltered ? textAt(candidate, "finishMessage") || word : "" };
  }
  const feedback = recordAt(chunk, "promptFeedback") ?? {};
  const blocked = textAt(feedback, "blockReason");
  if (blocked === "" || blocked.endsWith("_REASON_UNSPECIFIED")) return undefined;
  const detail = textAt(feedback, "blockReasonMessage") || blocked;
  return { reason: StopReason.CONTENT_FILTER, detail };
}
