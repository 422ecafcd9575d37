/** The vendor's side of messages: streamed replies. */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  GenerateEventSchema,
  StopReason,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { type StreamDecoder } from "../codec.ts";
import {
  UnreadableReplyError,
  parseRecord,
  recordAt,
  textAt,
  type JsonRecord,
} from "../json/value.ts";
import { BlockDecoder } from "./decode-stream-items.ts";
import { failureCode } from "./errors.ts";
import { type Ending, readEnding } from "./finish-reason.ts";
import { readUsage } from "./usage.ts";
import { readServedTier } from "./wire.ts";
import { EventDataReader } from "../sse/event-stream.ts";

/** Implements {@link VendorCodec.decodeStream}. */
export class MessagesStreamDecoder implements StreamDecoder {
  readonly #data = new EventDataReader();
  readonly #blocks = new BlockDecoder();
  /** What was told of the usage so far: later figures are totals, and replace the earlier. */
  #usageMembers: Record<string, unknown> = {};
  #usage: Usage | undefined;
  #ending: Ending | undefined;
  /** Whether the last event has been returned. */
  #isOver = false;

  get unfinishedBytes(): number {
    return this.#data.restBytes;
  }

  get usage(): Usage | undefined {
    return this.#usage;
  }

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    const events: GenerateEvent[] = [];
    this.#data.read(pieces, (data) => this.#onData(data, events));
    return events;
  }

  end(): GenerateEvent[] {
    // The last event counts also without the empty line behind it.
    const events =
      this.#data.rest === undefined || this.#isOver ? [] : this.push([Buffer.from("\n\n")]);
    const isComplete = this.#ending !== undefined && !this.#blocks.isOpen;
    if (!this.#isOver && isComplete) events.push(this.#end());
    return events;
  }

  #onData(data: string, events: GenerateEvent[]): void {
    if (this.#isOver) return;
    const record = parseRecord(data);
    if (record === undefined) {
      // Some gateways end every stream like this.
      if (data.trim() === "[DONE]") return;
      throw new UnreadableReplyError("an event of the vendor's stream is not a JSON object");
    }
    switch (record["type"]) {
      case "content_block_delta":
        this.#blocks.delta(record, events);
        break;
      case "content_block_start":
        this.#blocks.start(record, events);
        break;
      case "content_block_stop":
        this.#blocks.stop(record, events);
        break;
      case "message_start":
        events.push(this.#start(recordAt(record, "message") ?? {}));
        break;
      case "message_delta":
        this.#onMessageDelta(record);
        break;
      case "message_stop":
        events.push(this.#end());
        break;
      case "error":
        events.push(this.#fail(recordAt(record, "error") ?? {}));
        break;
      default:
        // `ping`, and what is yet to come. A stream of another style has no type at all.
        if (typeof record["type"] !== "string") {
          throw new UnreadableReplyError("an event of the vendor's stream has no type");
        }
    }
  }

  #start(message: JsonRecord): GenerateEvent {
    this.#addUsage(message);
    // Of its output it only tells that there will be some: nothing has come that could be charged.
    if (this.#usageMembers["output_tokens"] !== undefined) this.#usageMembers["output_tokens"] = 0;
    const usage = readUsage(this.#usageMembers);
    this.#usage = usage;
    const id = textAt(message, "id");
    const model = textAt(message, "model");
    return create(GenerateEventSchema, {
      kind: { case: "start", value: { id, model, ...(usage && { usage }) } },
    });
  }

  #onMessageDelta(record: JsonRecord): void {
    this.#addUsage(record);
    const ending = readEnding(recordAt(record, "delta") ?? {});
    if (ending.stopReason !== StopReason.UNSPECIFIED) this.#ending = ending;
  }

  #addUsage(record: JsonRecord): void {
    for (const [name, value] of Object.entries(recordAt(record, "usage") ?? {})) {
      if (value !== null) this.#usageMembers[name] = value;
    }
    this.#usage = readUsage(this.#usageMembers);
  }

  #end(): GenerateEvent {
    this.#isOver = true;
    const usage = this.#usage;
    const serviceTier = readServedTier(textAt(this.#usageMembers, "service_tier"));
    return create(GenerateEventSchema, {
      kind: { case: "end", value: { ...this.#ending, serviceTier, ...(usage && { usage }) } },
    });
  }

  #fail(error: JsonRecord): GenerateEvent {
    this.#isOver = true;
    const code = failureCode(textAt(error, "type"));
    const message = textAt(error, "message");
    return create(GenerateEventSchema, { kind: { case: "error", value: { code, message } } });
  }
}
