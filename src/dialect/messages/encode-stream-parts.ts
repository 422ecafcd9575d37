/** Writes one part of a streamed reply as the events of one block. */
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
import type { PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReplyOptions } from "../codec.ts";
import { memberOf, changeMembers } from "../../wire/json/source.ts";
import { sourcesText, writeCitation } from "./citation.ts";
import { clientData, clientSignature, isRedacted, shownThinking } from "./reasoning.ts";
import { clientOpaque, legalToolId } from "./wire.ts";

/** A block while it is written: `begin`, deltas, `end`. */
export interface BlockWriter {
  /** Whether the block has been written: one that turns out to be empty never is. */
  readonly isWritten: boolean;
  /** The block is next, under this number. */
  begin(index: number): string;
  /** More of it. */
  delta(delta: PartDelta): string;
  /** It is complete. */
  end(): string;
}

/** The writer for a part; `undefined` if the style has no block for it: reported as dropped. */
export function blockWriterFor(
  part: Part | undefined,
  options: ReplyOptions,
): BlockWriter | undefined {
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

/**
 * Returns the text before the value of a delta's only member; {@link deltaEnd} follows the value.
 */
function deltaPrefix(index: number, type: string, member: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${member}":`;
}

const deltaEnd = "}}\n\n";

function stopFrame(index: number): string {
  return `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`;
}

/**
 * Writes text, and refusals as text. The block begins with the first text, because the vendor
 * refuses empty blocks in later requests.
 */
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

/**
 * Writes a call. The first delta is empty, like the vendor's. Without input, an empty object is
 * written.
 */
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
    // Free text becomes the only string of an object.
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

  /** Returns the separator between summaries; empty before the first. */
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

/**
 * Writes blocks specific to this style: whole in the start event, except for an input, which SDKs
 * read from deltas.
 */
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
