/**
 * The client's side of messages: streamed replies. One block is open at a time, numbered from 0.
 */
import type { Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type {
  GenerateEvent,
  PartDelta,
  ReplyEnd,
  ReplyStart,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode, GatewayError, type SentErrorCode } from "../../core/errors.ts";
import type { ReplyOptions, StreamEncoder } from "../codec.ts";
import { messagesErrorBody } from "./errors.ts";
import { writeEnding } from "./finish-reason.ts";
import { estimatedUsage, type WireUsage, writeUsage } from "./usage.ts";
import { messageId, writeServedTier } from "./wire.ts";
import { type BlockWriter, blockWriterFor } from "./encode-stream-parts.ts";

/** A part that has begun. */
interface OpenPart {
  readonly index: number;
  readonly writer: BlockWriter;
  /** Deltas that arrived while another part was open. */
  readonly waiting: PartDelta[];
  isEnded: boolean;
}

/** Implements {@link CallerCodec.encodeStream}. */
export class MessagesStreamEncoder implements StreamEncoder {
  readonly #options: ReplyOptions;
  /**
   * The parts that have begun and are not written to their end; the first of them is the open one.
   */
  readonly #parts: OpenPart[] = [];
  #isStarted = false;
  #hasToolCall = false;
  #refusal: string | undefined;
  /** The number of the next block. */
  #next = 0;

  constructor(options: ReplyOptions) {
    this.#options = options;
  }

  push({ kind }: GenerateEvent): string {
    switch (kind.case) {
      case "partDelta":
        return this.#onDelta(kind.value);
      case "partStart":
        return this.#begin() + this.#onPartStart(kind.value.index, kind.value.part);
      case "partEnd":
        return this.#onPartEnd(kind.value.index);
      case "start":
        return this.#begin(kind.value);
      case "end":
        return this.#begin() + this.#end(kind.value);
      case "error":
        return this.fail(failure(kind.value));
      case undefined:
      default:
        return "";
    }
  }

  fail(error: GatewayError): string {
    return frame("error", JSON.stringify(messagesErrorBody(error, "")));
  }

  /** The first event, once: whatever the vendor begins with. */
  #begin(start?: ReplyStart): string {
    if (this.#isStarted) return "";
    this.#isStarted = true;
    const message = {
      id: messageId(start?.id ?? "", this.#options),
      type: "message",
      role: "assistant",
      model: this.#options.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: this.#startUsage(start),
    };
    return frame("message_start", JSON.stringify({ type: "message_start", message }));
  }

  /**
   * R-TXT-4: some SDKs read the input only from here, so it is never 0. They add the output to the
   * final output, so it is always 0.
   */
  #startUsage(start: ReplyStart | undefined): WireUsage {
    if (start?.usage === undefined || start.usage.inputTokens === 0) {
      return estimatedUsage(this.#options.inputTokens);
    }
    const { output_tokens_details: _none, ...usage } = writeUsage(start.usage);
    return { ...usage, input_tokens: Math.max(usage.input_tokens, 1), output_tokens: 0 };
  }

  #onPartStart(index: number, part: Part | undefined): string {
    const writer = blockWriterFor(part, this.#options);
    if (writer === undefined) return "";
    if (part?.kind.case === "toolCall") this.#hasToolCall = true;
    if (part?.kind.case === "refusal") this.#refusal ??= "";
    this.#parts.push({ index, writer, waiting: [], isEnded: false });
    return this.#parts.length === 1 ? writer.begin(this.#next) : "";
  }

  #onDelta(delta: PartDelta): string {
    const [open] = this.#parts;
    if (open?.index === delta.index) return open.writer.delta(delta);
    this.#parts.find(({ index }) => index === delta.index)?.waiting.push(delta);
    return "";
  }

  #onPartEnd(index: number): string {
    const part = this.#parts.find((each) => each.index === index);
    if (part === undefined) return "";
    part.isEnded = true;
    return part === this.#parts[0] ? this.#close() : "";
  }

  /**
   * Ends the open part and all that have ended behind it; the first that has not becomes the open
   * one.
   */
  #close(): string {
    let text = "";
    for (;;) {
      const ended = this.#parts.shift();
      if (ended === undefined) return text;
      text += ended.writer.end();
      if (ended.writer.isWritten) this.#next++;
      const [open] = this.#parts;
      if (open === undefined) return text;
      text += open.writer.begin(this.#next);
      for (const delta of open.waiting) text += open.writer.delta(delta);
      if (!open.isEnded) return text;
    }
  }

  #end(end: ReplyEnd): string {
    for (const part of this.#parts) part.isEnded = true;
    const rest = this.#parts.length === 0 ? "" : this.#close();
    const said = { hasToolCall: this.#hasToolCall, refusal: this.#refusal };
    const tier = writeServedTier(end.serviceTier);
    const usage = {
      ...(end.usage === undefined
        ? estimatedUsage(this.#options.inputTokens)
        : writeUsage(end.usage)),
      ...(tier !== undefined && { service_tier: tier }),
    };
    const delta = writeEnding(end, said);
    const last = JSON.stringify({ type: "message_delta", delta, usage });
    return `${rest}${frame("message_delta", last)}${messageStopFrame}`;
  }
}

/** Clients look at the event's name first: without it, the SDK ignores the event. */
function frame(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`;
}

const messageStopFrame = frame("message_stop", '{"type":"message_stop"}');

function failure({ code, message }: { code: ErrorCode; message: string }): GatewayError {
  const known = code === ErrorCode.UNSPECIFIED ? ErrorCode.UPSTREAM_ERROR : (code as SentErrorCode);
  return new GatewayError(known, message || "The model's vendor failed; try again");
}
