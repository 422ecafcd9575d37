/** The client's side of messages: streamed replies. One block is open at a time, numbered from 0. */
import { create } from "@bufbuild/protobuf";
import {
  type Citation,
  type Part,
  type Reasoning,
  ReasoningSchema,
  type TextPart,
  type ToolCall,
  ToolType,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type {
  GenerateEvent,
  PartDelta,
  ReplyEnd,
  ReplyStart,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import { ErrorCode, GatewayError, type SentErrorCode } from "../../core/errors.ts";
import type { ReplyOptions, StreamEncoder } from "../codec.ts";
import { memberOf, changeMembers } from "../../wire/json/source.ts";
import { sourcesText, writeCitation } from "./citation.ts";
import { messagesErrorBody } from "./errors.ts";
import { writeEnding } from "./finish-reason.ts";
import { clientData, clientSignature, isRedacted, shownThinking } from "./reasoning.ts";
import { estimatedUsage, type WireUsage, writeUsage } from "./usage.ts";
import { clientOpaque, legalToolId, messageId, writeServedTier } from "./wire.ts";

/** A part that has begun. */
interface OpenPart {
  readonly index: number;
  readonly writer: BlockWriter;
  /** What came while another part was open. */
  readonly waiting: PartDelta[];
  isEnded: boolean;
}

/** Implements {@link CallerCodec.encodeStream}. */
export class MessagesStreamEncoder implements StreamEncoder {
  readonly #options: ReplyOptions;
  /** The parts that have begun and are not written to their end; the first of them is the open one. */
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
   * R-TXT-4: some SDKs take the input from here only, so that it is never 0; and add the output to that of
   * the end, so that it always is.
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

  /** Ends the open part and all that have ended behind it; the first that has not becomes the open one. */
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

// Writes one part of a streamed reply as the events of one block.

/** A block while it is written: `begin`, deltas, `end`. */
interface BlockWriter {
  /** Whether the block has been written: one that turns out to be empty never is. */
  readonly isWritten: boolean;
  /** The block is next, under this number. */
  begin(index: number): string;
  /** More of it. */
  delta(delta: PartDelta): string;
  /** It is complete. */
  end(): string;
}

/** The writer for a part; `undefined` where the style has no block for it: reported as dropped. */
function blockWriterFor(part: Part | undefined, options: ReplyOptions): BlockWriter | undefined {
  switch (part?.kind.case) {
    case "text":
      return new TextWriter(part.kind.value, options);
    case "refusal":
      return new TextWriter({ text: part.kind.value.text, citations: [] }, options);
    case "reasoning":
      return new ThinkingWriter(part.kind.value);
    case "toolCall":
      return new ToolWriter(part.kind.value);
    case "opaque": {
      const json = clientOpaque(part.kind.value, options);
      return json === undefined ? undefined : new WholeWriter(json);
    }
    case "media":
    case "toolResult":
    case undefined:
    default:
      options.onDropped(part?.kind.case ?? "part");
      return undefined;
  }
}

/** The event that begins a block. */
function startFrame(index: number, block: string): string {
  return `event: content_block_start\ndata: {"type":"content_block_start","index":${index},"content_block":${block}}\n\n`;
}

/** What stands before the value of a delta's one member, and behind it is {@link deltaEnd}. */
function deltaPrefix(index: number, type: string, member: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${member}":`;
}

const deltaEnd = "}}\n\n";

function stopFrame(index: number): string {
  return `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`;
}

/** Text, and refusals, which are told as text. The block begins with the first of it: the vendor would not
 * take an empty one back. */
class TextWriter implements BlockWriter {
  isWritten = false;
  readonly #first: Pick<TextPart, "text" | "citations">;
  readonly #options: ReplyOptions;
  /** Sources that came before the text. */
  readonly #waiting: Citation[] = [];
  #index = 0;
  #prefix = "";

  constructor(first: Pick<TextPart, "text" | "citations">, options: ReplyOptions) {
    this.#first = first;
    this.#options = options;
  }

  begin(index: number): string {
    this.#index = index;
    this.#prefix = deltaPrefix(index, "text_delta", "text");
    return this.#text(this.#first.text);
  }

  delta({ delta }: PartDelta): string {
    if (delta.case === "text") return this.#text(delta.value);
    if (delta.case !== "citation") return "";
    if (this.isWritten) return this.#cite(delta.value);
    this.#waiting.push(delta.value);
    return "";
  }

  end(): string {
    const sources = this.isWritten ? "" : this.#text(sourcesText(this.#waiting));
    if (!this.isWritten) {
      if (this.#waiting.length > 0) this.#options.onDropped("citations");
      return "";
    }
    return sources + stopFrame(this.#index);
  }

  #cite(citation: Citation): string {
    const json = writeCitation(citation, "");
    if (json !== undefined) {
      return deltaPrefix(this.#index, "citations_delta", "citation") + json + deltaEnd;
    }
    this.#options.onDropped("citations");
    return "";
  }

  #text(text: string): string {
    if (text === "") return "";
    const delta = this.#prefix + JSON.stringify(text) + deltaEnd;
    if (this.isWritten) return delta;
    this.isWritten = true;
    const begun = startFrame(this.#index, '{"type":"text","text":""}') + delta;
    return begun + this.#waiting.map((citation) => this.#cite(citation)).join("");
  }
}

/** A call. The first delta is empty, as the vendor's is; without input, it is that of an empty object. */
class ToolWriter implements BlockWriter {
  isWritten = false;
  readonly #call: ToolCall;
  readonly #isCustom: boolean;
  #index = 0;
  #prefix = "";
  #hasInput = false;

  constructor(call: ToolCall) {
    this.#call = call;
    this.#isCustom = call.type === ToolType.CUSTOM;
  }

  begin(index: number): string {
    this.#index = index;
    this.isWritten = true;
    this.#prefix = deltaPrefix(index, "input_json_delta", "partial_json");
    const { id, name, input } = this.#call;
    const block = JSON.stringify({ type: "tool_use", id: legalToolId(id), name, input: {} });
    // Free text stands as the one string of an object.
    const opening = this.#isCustom ? this.#raw('{"input":"') : "";
    return startFrame(index, block) + this.#raw("") + opening + this.#input(input);
  }

  delta({ delta }: PartDelta): string {
    return delta.case === "input" ? this.#input(delta.value) : "";
  }

  end(): string {
    const rest = this.#isCustom ? this.#raw('"}') : this.#hasInput ? "" : this.#raw("{}");
    return rest + stopFrame(this.#index);
  }

  #input(text: string): string {
    if (text === "") return "";
    this.#hasInput = true;
    return this.#raw(this.#isCustom ? JSON.stringify(text).slice(1, -1) : text);
  }

  #raw(text: string): string {
    return this.#prefix + JSON.stringify(text) + deltaEnd;
  }
}

/** Reasoning. The signature comes whole and last: the SDK keeps the last delta of it only. */
class ThinkingWriter implements BlockWriter {
  isWritten = false;
  readonly #reasoning: Reasoning;
  #index = 0;
  #prefix = "";

  constructor(reasoning: Reasoning) {
    this.#reasoning = create(ReasoningSchema, reasoning);
  }

  begin(index: number): string {
    this.#index = index;
    this.#prefix = deltaPrefix(index, "thinking_delta", "thinking");
    return this.#show(shownThinking(this.#reasoning));
  }

  delta({ delta }: PartDelta): string {
    const reasoning = this.#reasoning;
    switch (delta.case) {
      case "text": {
        const gap = reasoning.text === "" ? this.#gap() : "";
        reasoning.text += delta.value;
        return this.#show(gap + delta.value);
      }
      case "summaryStart": {
        const gap = this.#gap();
        reasoning.summaries.push("");
        return this.#show(gap);
      }
      case "summary": {
        reasoning.summaries.push((reasoning.summaries.pop() ?? "") + delta.value);
        return this.#show(delta.value);
      }
      case "seal":
        reasoning.seal = delta.value;
        return "";
      case "input":
      case "citation":
      case undefined:
      default:
        return "";
    }
  }

  end(): string {
    const reasoning = this.#reasoning;
    if (!this.isWritten) {
      if (isRedacted(reasoning)) return this.#redacted();
      if (reasoning.seal === undefined) return "";
    }
    const opening = this.#open();
    const signature = JSON.stringify(clientSignature(reasoning));
    const prefix = deltaPrefix(this.#index, "signature_delta", "signature");
    return `${opening}${prefix}${signature}${deltaEnd}${stopFrame(this.#index)}`;
  }

  /** What parts one summary from the next: nothing before the first. */
  #gap(): string {
    return shownThinking(this.#reasoning) === "" ? "" : "\n\n";
  }

  #show(text: string): string {
    if (text === "") return "";
    return this.#open() + this.#prefix + JSON.stringify(text) + deltaEnd;
  }

  #open(): string {
    if (this.isWritten) return "";
    this.isWritten = true;
    return startFrame(this.#index, '{"type":"thinking","thinking":"","signature":""}');
  }

  #redacted(): string {
    this.isWritten = true;
    const block = { type: "redacted_thinking", data: clientData(this.#reasoning) };
    return startFrame(this.#index, JSON.stringify(block)) + stopFrame(this.#index);
  }
}

/** What only this style knows: whole in its start, but for an input, which the SDKs take from deltas. */
class WholeWriter implements BlockWriter {
  isWritten = false;
  readonly #json: string;
  #index = 0;

  constructor(json: string) {
    this.#json = json;
  }

  begin(index: number): string {
    this.#index = index;
    this.isWritten = true;
    const input = memberOf(this.#json, "input");
    if (input === "") return startFrame(index, this.#json);
    const start = startFrame(index, changeMembers(this.#json, { input: "{}" }));
    const delta = deltaPrefix(index, "input_json_delta", "partial_json") + JSON.stringify(input);
    return start + delta + deltaEnd;
  }

  delta(): string {
    return "";
  }

  end(): string {
    return stopFrame(this.#index);
  }
}
