import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type StreamDecoder } from "../codec.ts";
import { UnreadableReplyError, parseRecord } from "../json/value.ts";
import { EventDataReader, type UnfinishedEvent } from "../sse/event-stream.ts";
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
    const { rest } = this.#data;
    // What the vendor did not end with an empty line: where it is whole, it counts.
    const events = rest !== undefined && isWhole(rest) ? this.push([Buffer.from("\n\n")]) : [];
    this.#reader.end(events);
    return events;
  }

  #onData(data: string, events: GenerateEvent[]): void {
    const chunk = parseRecord(data);
    if (chunk === undefined) throw new UnreadableReplyError("an event is not a JSON object");
    this.#reader.read(chunk, events);
  }
}

/** Implements {@link VendorCodec.addedTextBytes}. */
export function addedGeminiText(event: Buffer): number {
  let textBytes = 0;
  for (const { kind } of new GeminiStreamDecoder().push([event])) {
    const delta = kind.case === "partDelta" ? kind.value.delta.value : undefined;
    if (typeof delta === "string") textBytes += Buffer.byteLength(delta);
  }
  return textBytes;
}

/** Whether the last event only lacks its empty line. */
function isWhole(rest: Buffer): boolean {
  const text = rest.toString("utf8").trim();
  return text.startsWith("data:") && parseRecord(text.slice("data:".length)) !== undefined;
}
