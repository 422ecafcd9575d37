import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { StreamDecoder, StreamSplitter } from "../codec.ts";
import { JsonSource, changeMembers } from "../../wire/json/source.ts";
import {
  type JsonRecord,
  parseRecord,
  recordsAt,
  UnreadableReplyError,
} from "../../wire/json/value.ts";
import { EventDataReader, missingEnd, type UnfinishedEvent } from "../../wire/sse/event-stream.ts";
import { ReplyReader } from "./decode-content.ts";

/** Implements {@link VendorCodec.decodeStream}: events of one `data:` each, and no end mark. */
export class GeminiStreamDecoder implements StreamDecoder {
  readonly #data = new EventDataReader();
  readonly #reader = new ReplyReader();

  get unfinished(): UnfinishedEvent {
    return this.#data.unfinished;
  }

  get usage(): Usage | undefined {
    return this.#reader.usage;
  }

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    const events: GenerateEvent[] = [];
    if (this.#reader.isOver) return events;
    this.#data.read(pieces, (data) => this.#onData(data, events));
    return events;
  }

  end(): GenerateEvent[] {
    const missing = missingEnd(this.#data.rest);
    const events = missing === undefined ? [] : this.push([missing]);
    this.#reader.end(events);
    return events;
  }

  #onData(data: string, events: GenerateEvent[]): void {
    if (isEndMark(data)) return;
    const chunk = parseChunk(data);
    this.#reader.read(chunk, new JsonSource(data, chunk), events);
  }
}

/**
 * Implements {@link VendorCodec.splitStream}: a chunk may contain any of the candidates. The first
 * choice gets every chunk, for its usage. Each other choice gets the chunks from its first
 * candidate on, because a vendor may generate fewer choices than requested.
 */
export class GeminiStreamSplitter implements StreamSplitter {
  readonly #data = new EventDataReader();
  readonly #begun: boolean[];

  constructor(choices: number) {
    this.#begun = Array.from({ length: choices }, (_, choice) => choice === 0);
  }

  get unfinished(): UnfinishedEvent {
    return this.#data.unfinished;
  }

  push(pieces: readonly Buffer[]): readonly (readonly Buffer[])[] {
    const split = this.#begun.map((): Buffer[] => []);
    this.#data.read(pieces, (data) => {
      if (isEndMark(data)) return;
      const chunk = parseChunk(data);
      const source = new JsonSource(data, chunk);
      const found = recordsAt(chunk, "candidates");
      for (const [choice, events] of split.entries()) {
        const own = found.filter((each, place) => indexOf(each, place) === choice);
        this.#begun[choice] ||= own.length > 0;
        if (!this.#begun[choice]) continue;
        const candidates = `[${own.map((each) => source.textOf(each)).join(",")}]`;
        events.push(Buffer.from(`data: ${changeMembers(data, { candidates })}\n\n`));
      }
    });
    return split;
  }

  end(): readonly (readonly Buffer[])[] {
    const missing = missingEnd(this.#data.rest);
    return this.push(missing === undefined ? [] : [missing]);
  }
}

/** The choice of a candidate. An index of 0 is left out by some. */
function indexOf({ index }: JsonRecord, place: number): number {
  return typeof index === "number" ? index : place;
}

/** Whether an event only ends the stream: proxies add it in every style. */
function isEndMark(data: string): boolean {
  return data.trim() === "[DONE]";
}

function parseChunk(data: string): JsonRecord {
  const chunk = parseRecord(data);
  if (chunk === undefined) throw new UnreadableReplyError("an event is not a JSON object");
  return chunk;
}

/** The most candidates that Gemini makes. */
const candidatesMax = 8;

/** Implements {@link VendorCodec.addedTextBytes}. */
export function addedGeminiText(event: Buffer): number {
  let textBytes = 0;
  for (const events of new GeminiStreamSplitter(candidatesMax).push([event])) {
    for (const { kind } of new GeminiStreamDecoder().push(events)) {
      const delta = kind.case === "partDelta" ? kind.value.delta.value : undefined;
      if (typeof delta === "string") textBytes += Buffer.byteLength(delta);
    }
  }
  return textBytes;
}
