/** Streamed replies with several choices. */
import type { GenerateEvent, ReplyEnd } from "../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { emptyBuffer } from "../core/bytes.ts";
import { GatewayError } from "../core/errors.ts";
import type { ToolCalls } from "./features/billed-features.ts";
import type { VendorCodec, ChoicesEncoder, StreamSplitter } from "./codec.ts";
import type { StreamRelay } from "./dialect.ts";
import { lengthEnd } from "./reply-events.ts";
import { sumToolCalls } from "./tools/tool-calls.ts";
import type { UnfinishedEvent } from "../wire/sse/event-stream.ts";
import { invalid } from "../core/validation.ts";
import { asReported, type Translation, type ChargedUsage, EventStream } from "./translate.ts";

/** Options of {@link TranslatedChoices}. */
interface ChoicesOptions {
  /** One for each choice. */
  readonly choices: readonly Translation[];
  readonly splitter: StreamSplitter;
  readonly encoder: ChoicesEncoder;
  /** The usage of all choices together. */
  readonly charged: ChargedUsage;
}

/** Translates a stream of several choices: each is a separate stream between the two styles. */
export class TranslatedChoices implements StreamRelay {
  estimated: Usage | undefined;
  readonly #options: ChoicesOptions;
  readonly #sources: readonly EventStream[];
  /** Choices that have begun: a vendor may generate fewer than requested. */
  readonly #begun = new Set<EventStream>();
  #isDone = false;

  constructor(options: ChoicesOptions) {
    this.#options = options;
    this.#sources = options.choices.map(
      ({ vendor, tools }) => new EventStream(vendor.decodeStream(), tools, asReported),
    );
  }

  /** Each choice has the vendor's figures of all. */
  get usage(): Usage | undefined {
    return this.#sources[0]?.usage;
  }

  get textBytes(): number {
    return this.#sources.reduce((sum, { textBytes }) => sum + textBytes, 0);
  }

  get textPieces(): number {
    return this.#sources.reduce((sum, { textPieces }) => sum + textPieces, 0);
  }

  get units(): ToolCalls | undefined {
    return sumToolCalls(this.#sources.map(({ units }) => units));
  }

  get unfinished(): UnfinishedEvent {
    return this.#options.splitter.unfinished;
  }

  get finished(): boolean {
    return this.#begun.size > 0 && [...this.#begun].every(({ finished }) => finished);
  }

  get done(): boolean {
    return this.#isDone;
  }

  get failed(): boolean {
    return this.#failure !== undefined;
  }

  get isCutShort(): boolean {
    return this.#begun.size > 0 && [...this.#begun].every(({ isCutShort }) => isCutShort);
  }

  push(pieces: readonly Buffer[]): Buffer {
    return this.#write(this.#options.splitter.push(pieces), false);
  }

  end(): Buffer {
    return this.#write(this.#options.splitter.end(), true);
  }

  errorEvent(error: GatewayError): Buffer {
    return Buffer.from(this.#options.encoder.fail(error));
  }

  stop(usage: Usage | undefined): Buffer {
    const { encoder } = this.#options;
    const event = lengthEnd(usage);
    const ends = this.#sources.map((source, choice) =>
      source.finished || !this.#begun.has(source) ? "" : encoder.push(choice, event),
    );
    const last = event.kind.case === "end" ? encoder.endReply(event.kind.value) : "";
    return Buffer.from(ends.join("") + last);
  }

  get #failure(): GatewayError | undefined {
    return this.#sources.find(({ failure }) => failure !== undefined)?.failure;
  }

  #write(split: readonly (readonly Buffer[])[], isEnd: boolean): Buffer {
    if (this.failed || this.#isDone) return emptyBuffer;
    const { encoder, choices } = this.#options;
    const read = this.#sources.map((source, choice): readonly GenerateEvent[] => {
      const pieces = split[choice] ?? [];
      if (pieces.length > 0) this.#begun.add(source);
      const events = pieces.length === 0 ? [] : source.push(pieces);
      return isEnd ? [...events, ...source.end()] : events;
    });
    let text = "";
    let last: ReplyEnd | undefined;
    for (const [choice, events] of read.entries()) {
      choices[choice]?.watcher?.addEvents(events);
      for (const event of events) {
        const { kind } = event;
        if (kind.case === "error") return Buffer.from(text + this.#fail(choice, event));
        if (kind.case === "end") last = kind.value;
        text += encoder.push(choice, event);
      }
    }
    if (last !== undefined && this.finished) {
      this.#isDone = true;
      this.#setUsage(last);
      text += encoder.endReply(last);
    }
    return text === "" ? emptyBuffer : Buffer.from(text);
  }

  #fail(choice: number, { kind }: GenerateEvent): string {
    const source = this.#sources[choice];
    if (source === undefined || kind.case !== "error") return "";
    return this.#options.encoder.fail(source.fail(kind.value));
  }

  #setUsage(end: ReplyEnd): void {
    const { usage } = this;
    if (usage !== undefined) end.usage = usage;
    const { textBytes, units, isCutShort: isInputOwed } = this;
    const text = { reported: usage, textBytes, units, isInputOwed };
    const { due, told } = this.#options.charged(text);
    if (told !== undefined) end.usage = told;
    if (due !== usage && due !== undefined) this.estimated = due;
  }
}

/**
 * Refuses several choices of a vendor that makes one, or streams one. @throws GatewayError
 * INVALID_REQUEST
 */
export function requireChoices(
  { splitChoices, splitStream }: Pick<VendorCodec, "splitChoices" | "splitStream">,
  { choices, stream }: { readonly choices: number; readonly stream: boolean },
): void {
  if (choices === 1 || (stream ? splitStream : splitChoices) !== undefined) return;
  const instead = `but this model gives one reply at a time; send the request ${choices} times`;
  throw invalid("n", `"n" is ${choices}, ${instead}`);
}
