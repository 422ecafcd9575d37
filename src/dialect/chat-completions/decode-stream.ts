/** A vendor's streamed reply. */
import { eventBytesMax } from "../../config/limits.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { type StreamDecoder, UnreadableReplyError } from "../codec.ts";
import { type EventPlace, EventSplitter } from "../event-stream.ts";
import { isRecord, type JsonRecord, parseRecord } from "../json.ts";
import { ChunkReader } from "./chunk-reader.ts";

/** See {@link VendorCodec.decodeStream}. */
export class ChatStreamDecoder implements StreamDecoder {
  readonly #splitter = new EventSplitter(eventBytesMax);
  readonly #reader = new ChunkReader();

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    const events: GenerateEvent[] = [];
    const source = this.#splitter.begin(pieces);
    let at = 0;
    while (at < source.length) {
      const place = this.#splitter.next(at);
      if (place === undefined) break;
      this.#onEvent(source, place, events);
      at = place.end;
    }
    this.#splitter.finish(at, source.subarray(0, 0));
    return events;
  }

  end(): GenerateEvent[] {
    const events = this.#isWhole() ? this.push([Buffer.from("\n\n")]) : [];
    this.#reader.close(events);
    return events;
  }

  /** Whether what is left is an event that lacks only its end, and none that was cut in its middle. */
  #isWhole(): boolean {
    const data = /^data: ?(.*)$/m.exec(this.#splitter.rest?.toString("utf8").trimEnd() ?? "")?.[1];
    return data === "[DONE]" || parseRecord(data ?? "") !== undefined;
  }

  #onEvent(source: Buffer, place: EventPlace, events: GenerateEvent[]): void {
    if (place.dataLines === 0 || this.#reader.isDone) return;
    const data =
      place.dataLines === 1
        ? source.toString("utf8", place.dataStart, place.dataEnd)
        : joinData(source.toString("utf8", place.start, place.end));
    if (data.trim() === "[DONE]") this.#reader.finish(events);
    else this.#reader.read(parseChunk(data), events);
  }
}

function joinData(event: string): string {
  return event
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(line[5] === " " ? 6 : 5))
    .join("\n");
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
