import { eventBytesMax } from "../../config/limits.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { nothing } from "../../bytes.ts";
import { type StreamDecoder, UnreadableReplyError } from "../codec.ts";
import { type EventPlace, EventSplitter } from "../event-stream.ts";
import { parseRecord } from "../json.ts";
import { ReplyReader } from "./reply-reader.ts";

/** See {@link VendorCodec.decodeStream}: events of one `data:` each, and no end mark. */
export class GeminiStreamDecoder implements StreamDecoder {
  readonly #splitter = new EventSplitter(eventBytesMax);
  readonly #reader = new ReplyReader();

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    const events: GenerateEvent[] = [];
    if (this.#reader.isOver) return events;
    const source = this.#splitter.begin(pieces);
    let at = 0;
    while (at < source.length) {
      const place = this.#splitter.next(at);
      if (place === undefined) break;
      at = place.end;
      this.#onEvent(source, place, events);
    }
    this.#splitter.finish(at, nothing);
    return events;
  }

  end(): GenerateEvent[] {
    const { rest } = this.#splitter;
    // What the vendor did not end with an empty line: where it is whole, it counts.
    const events = rest !== undefined && isWhole(rest) ? this.push([Buffer.from("\n\n")]) : [];
    this.#reader.end(events);
    return events;
  }

  #onEvent(source: Buffer, place: EventPlace, events: GenerateEvent[]): void {
    if (place.dataLines === 0) return;
    const data = dataOf(source, place);
    const chunk = parseRecord(data);
    if (chunk === undefined) throw new UnreadableReplyError("an event is not a JSON object");
    this.#reader.read(chunk, events);
  }
}

function dataOf(source: Buffer, place: EventPlace): string {
  if (place.dataLines === 1) return source.toString("utf8", place.dataStart, place.dataEnd);
  const lines = source.toString("utf8", place.start, place.end).split(/\r\n|\r|\n/);
  return lines
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice("data:".length))
    .join("\n");
}

/** Whether the last event only lacks its empty line. */
function isWhole(rest: Buffer): boolean {
  const text = rest.toString("utf8").trim();
  return text.startsWith("data:") && parseRecord(text.slice("data:".length)) !== undefined;
}
