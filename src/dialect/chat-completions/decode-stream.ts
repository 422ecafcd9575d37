/** A vendor's streamed reply. */
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type StreamDecoder, UnreadableReplyError } from "../codec.ts";
import { EventDataReader } from "../event-data.ts";
import { isRecord, type JsonRecord, parseRecord } from "../json.ts";
import { ChunkReader } from "./chunk-reader.ts";

/** See {@link VendorCodec.decodeStream}. */
export class ChatStreamDecoder implements StreamDecoder {
  readonly #data = new EventDataReader();
  readonly #reader = new ChunkReader();

  get usage(): Usage | undefined {
    return this.#reader.usage;
  }

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    const events: GenerateEvent[] = [];
    this.#data.read(pieces, (data) => this.#onData(data, events));
    return events;
  }

  end(): GenerateEvent[] {
    const events = this.#isWhole() ? this.push([Buffer.from("\n\n")]) : [];
    this.#reader.close(events);
    return events;
  }

  /** Whether what is left is an event that lacks only its end, and none that was cut in its middle. */
  #isWhole(): boolean {
    const data = /^data: ?(.*)$/m.exec(this.#data.rest?.toString("utf8").trimEnd() ?? "")?.[1];
    return data === "[DONE]" || parseRecord(data ?? "") !== undefined;
  }

  #onData(data: string, events: GenerateEvent[]): void {
    if (this.#reader.isDone) return;
    if (data.trim() === "[DONE]") this.#reader.finish(events);
    else this.#reader.read(parseChunk(data), events);
  }
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
