/** A streamed reply for a client. */
import {
  type Citation,
  type Part,
  type Reasoning,
  type ReasoningSeal,
  type ToolCall,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type {
  GenerateEvent,
  PartDelta,
  ReplyEnd,
  ReplyError,
  ReplyStart,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode, errorMeanings, GatewayError, type SentErrorCode } from "../../core/errors.ts";
import { type ChoicesEncoder, errorBody, type ReplyOptions, type StreamEncoder } from "../codec.ts";
import { writeJson } from "../../wire/json/json-tree.ts";
import { encodeCitation } from "./citation.ts";
import { encodeFinishReason } from "./finish-reason.ts";
import { addMembers, carriedMembers, type OpaqueMembers } from "./opaque-members.ts";
import { LostMembers, replyId } from "./wire.ts";
import { encodeUsage } from "./usage.ts";

/** An open part. */
interface OpenPart {
  readonly kind: "text" | "refusal" | "reasoning" | "function" | "custom";
  /** The text of a chunk before and after its content. */
  readonly before: string;
  readonly after: string;
  /** Start of its text in the whole content, in characters. */
  readonly start: number;
  /** Whether anything of its text has been written. */
  isBegun: boolean;
}

/**
 * Implements {@link CallerCodec.encodeStream}. Only the text changes between chunks, so it is
 * inserted between two prepared texts.
 */
export class ChatStreamEncoder implements StreamEncoder {
  readonly #options: ReplyOptions;
  readonly #choice: number;
  readonly #lost: LostMembers;
  /** The parts of a chunk before and after its choices. */
  #head = "";
  readonly #tail: string;
  /** By their numbers. */
  readonly #parts: (OpenPart | undefined)[] = [];
  #calls = 0;
  /** By the ids of their calls: the calls' numbers, and members that wait for their call. */
  readonly #callNumbers = new Map<string, number>();
  readonly #carried = new Map<string, OpaqueMembers>();
  #contentChars = 0;
  #hasRefusal = false;
  #hasReasoning = false;

  /** @param choice its number among several. Default: the only one */
  constructor(options: ReplyOptions, choice = 0) {
    this.#options = options;
    this.#choice = choice;
    this.#lost = new LostMembers(options);
    this.#tail = options.generation.includeUsage ? '],"usage":null}\n\n' : "]}\n\n";
  }

  push({ kind }: GenerateEvent): string {
    switch (kind.case) {
      case "start":
        return this.#onStart(kind.value);
      case "partStart":
        return kind.value.part ? this.#onPart(kind.value.index, kind.value.part) : "";
      case "partDelta":
        return this.#onDelta(kind.value);
      case "partEnd":
        return this.#onPartEnd(kind.value.index);
      case "end":
        return this.#onEnd(kind.value);
      case "error":
        return this.fail(toError(kind.value));
      case undefined:
      default:
        return "";
    }
  }

  fail(error: GatewayError): string {
    return `data: ${JSON.stringify(errorBody(error))}\n\n`;
  }

  #onStart(start: Pick<ReplyStart, "id" | "created">): string {
    const { callId, created, model } = this.#options;
    const head = JSON.stringify({
      id: replyId(start.id, callId),
      object: "chat.completion.chunk",
      created: Number(start.created) || created,
      model,
    });
    this.#head = `data: ${head.slice(0, -1)},"choices":[`;
    return this.#chunk('{"role":"assistant","content":"","refusal":null}');
  }

  #chunk(delta: string): string {
    return `${this.#head}{"index":${this.#choice},"delta":${delta},"finish_reason":null}${this.#tail}`;
  }

  #onPart(index: number, part: Part): string {
    const { kind } = part;
    switch (kind.case) {
      case "text": {
        this.#open(index, "text", '{"content":', "}");
        const { text, citations } = kind.value;
        return this.#text(index, text) + citations.map((each) => this.#cite(index, each)).join("");
      }
      case "refusal":
        this.#hasRefusal = true;
        this.#open(index, "refusal", '{"refusal":', "}");
        return this.#text(index, kind.value.text);
      case "reasoning":
        this.#open(index, "reasoning", '{"reasoning_content":', "}");
        this.#lost.addSeal(kind.value.seal);
        return this.#carry(kind.value.seal) + this.#text(index, shownReasoning(kind.value));
      case "toolCall":
        return this.#onCall(index, kind.value);
      case "media":
      case "toolResult":
      case "opaque":
      case undefined:
      default:
        this.#lost.addPart(part);
        return "";
    }
  }

  #open(index: number, kind: OpenPart["kind"], before: string, after: string): void {
    this.#parts[index] = {
      kind,
      before: `${this.#head}{"index":${this.#choice},"delta":${before}`,
      after: `${after},"finish_reason":null}${this.#tail}`,
      start: this.#contentChars,
      isBegun: false,
    };
  }

  #onCall(index: number, call: ToolCall): string {
    const number = this.#calls++;
    const type = call.type === ToolType.CUSTOM ? "custom" : "function";
    const member = type === "custom" ? "input" : "arguments";
    const before = `{"tool_calls":[{"index":${number},"${type}":{"${member}":`;
    this.#open(index, type, before, "}}]}");
    const named = { name: call.name, [member]: "" };
    const first: Record<string, unknown> = { index: number, id: call.id, type, [type]: named };
    addMembers(first, this.#carried.get(call.id) ?? new Map());
    this.#callNumbers.set(call.id, number);
    return this.#chunk(`{"tool_calls":[${writeJson(first)}]}`) + this.#text(index, call.input);
  }

  /**
   * Carries members of compatible vendors inside a seal: with their call, or in a separate chunk.
   */
  #carry(seal: ReasoningSeal | undefined): string {
    const carried = seal && carriedMembers({ seal });
    if (carried === undefined) return "";
    const number = this.#callNumbers.get(carried.callId);
    const wire: Record<string, unknown> = number === undefined ? {} : { index: number };
    addMembers(wire, carried.members);
    if (carried.callId === "") return this.#chunk(writeJson(wire));
    if (number !== undefined) return this.#chunk(writeJson({ tool_calls: [wire] }));
    this.#carried.set(carried.callId, carried.members);
    return "";
  }

  #onDelta({ index, delta }: PartDelta): string {
    switch (delta.case) {
      case "text":
      case "input":
      case "summary":
        return this.#text(index, delta.value);
      case "summaryStart":
        return this.#parts[index]?.isBegun ? this.#text(index, "\n\n") : "";
      case "citation":
        return this.#cite(index, delta.value);
      case "seal":
        this.#lost.addSeal(delta.value);
        return this.#carry(delta.value);
      case undefined:
      default:
        return "";
    }
  }

  #text(index: number, text: string): string {
    const part = this.#parts[index];
    if (part === undefined || text === "") return "";
    const { before, after, kind } = part;
    if (kind === "text") this.#contentChars += text.length;
    if (part.isBegun) return before + JSON.stringify(text) + after;
    part.isBegun = true;
    // The style has a single member for reasoning, so parts are separated by a blank line.
    const gap = kind === "reasoning" && this.#hasReasoning ? "\n\n" : "";
    if (kind === "reasoning") this.#hasReasoning = true;
    return before + JSON.stringify(gap + text) + after;
  }

  #cite(index: number, citation: Citation): string {
    const start = this.#parts[index]?.start ?? 0;
    const annotation = encodeCitation(citation, { start, end: this.#contentChars });
    if (annotation !== undefined) return this.#chunk(writeJson({ annotations: [annotation] }));
    this.#lost.add("citations");
    return "";
  }

  /** Clients parse a function's arguments, and an empty text is no JSON. */
  #onPartEnd(index: number): string {
    const part = this.#parts[index];
    return part?.kind === "function" && !part.isBegun ? this.#text(index, "{}") : "";
  }

  #onEnd(end: ReplyEnd): string {
    return this.finish(end) + this.endReply(end);
  }

  /** Ends the choice. */
  finish(end: ReplyEnd): string {
    const begin = this.#head === "" ? this.#onStart({ id: "", created: 0n }) : "";
    const refusal = this.#lost.ending(end, this.#hasRefusal);
    const reason = encodeFinishReason(end.stopReason, this.#hasRefusal || refusal !== "");
    const finish = `{"index":${this.#choice},"delta":{},"finish_reason":"${reason}"}]`;
    return [
      begin,
      refusal === "" ? "" : this.#chunk(JSON.stringify({ refusal })),
      `${this.#head}${finish}${tierOf(end)}${this.#tail.slice(1)}`,
    ].join("");
  }

  /** Ends the reply, behind its last choice. */
  endReply(end: ReplyEnd): string {
    const { usage } = end;
    const hasUsage = this.#options.generation.includeUsage && usage !== undefined;
    const last = hasUsage
      ? `${this.#head}]${tierOf(end)},"usage":${JSON.stringify(encodeUsage(usage))}}\n\n`
      : "";
    return `${last}data: [DONE]\n\n`;
  }
}

/**
 * Implements {@link CallerCodec.encodeChoices}: chunks of all choices in the order in which they
 * come.
 */
export class ChatChoicesEncoder implements ChoicesEncoder {
  readonly #encoders: readonly ChatStreamEncoder[];

  constructor(options: ReplyOptions, choices: number) {
    this.#encoders = Array.from({ length: choices }, (_, at) => new ChatStreamEncoder(options, at));
  }

  push(choice: number, event: GenerateEvent): string {
    const encoder = this.#encoders[choice];
    const { kind } = event;
    return (kind.case === "end" ? encoder?.finish(kind.value) : encoder?.push(event)) ?? "";
  }

  endReply(end: ReplyEnd): string {
    return this.#encoders[0]?.endReply(end) ?? "";
  }

  fail(error: GatewayError): string {
    return this.#encoders[0]?.fail(error) ?? "";
  }
}

function tierOf({ serviceTier }: ReplyEnd): string {
  return serviceTier === "" ? "" : `,"service_tier":${JSON.stringify(serviceTier)}`;
}

function shownReasoning({ text, summaries }: Reasoning): string {
  return [text, ...summaries].filter((each) => each !== "").join("\n\n");
}

function toError({ code, message }: ReplyError): GatewayError {
  const sent = code in errorMeanings ? (code as SentErrorCode) : ErrorCode.UPSTREAM_ERROR;
  return new GatewayError(sent, message);
}
