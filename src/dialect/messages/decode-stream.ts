/** The vendor's side of messages: streamed replies. */
import { create } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  GenerateEventSchema,
  StopReason,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { StreamDecoder } from "../codec.ts";
import {
  type JsonRecord,
  parseRecord,
  recordAt,
  textAt,
  UnreadableReplyError,
} from "../../wire/json/value.ts";
import { missingCall, reconciledEnd, SeenContents } from "../reply-end.ts";
import { EventDataReader, type UnfinishedEvent } from "../../wire/sse/event-stream.ts";
import { failureCode } from "./errors.ts";
import { type Ending, readEnding } from "./finish-reason.ts";
import { StreamUsage } from "./usage.ts";
import { readServedTier } from "./wire.ts";
import { BlockDecoder } from "./decode-stream-parts.ts";

/** Implements {@link VendorCodec.decodeStream}. */
export class MessagesStreamDecoder implements StreamDecoder {
  readonly #data = new EventDataReader();
  readonly #blocks = new BlockDecoder();
  readonly #usage = new StreamUsage();
  readonly #seen = new SeenContents();
  #ending: Ending | undefined;
  /** Whether the last event has been returned. */
  #isOver = false;

  get unfinished(): UnfinishedEvent {
    return this.#data.unfinished;
  }

  get usage(): Usage | undefined {
    return this.#usage.usage;
  }

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    const events: GenerateEvent[] = [];
    this.#data.read(pieces, (data) => this.#onData(data, events));
    this.#see(events);
    return events;
  }

  end(): GenerateEvent[] {
    // The last event counts also without the empty line behind it.
    const events =
      this.#data.rest === undefined || this.#isOver ? [] : this.push([Buffer.from("\n\n")]);
    if (!this.#isOver && this.#ending !== undefined) this.#finish(events);
    return events;
  }

  #onData(data: string, events: GenerateEvent[]): void {
    if (this.#isOver) return;
    const record = parseRecord(data);
    if (record === undefined) {
      // Some gateways end every stream in this way.
      if (data.trim() === "[DONE]") return;
      throw new UnreadableReplyError("an event of the vendor's stream is not a JSON object");
    }
    switch (record["type"]) {
      case "content_block_delta":
        this.#blocks.delta(record, data, events);
        break;
      case "content_block_start":
        this.#blocks.start(record, data, events);
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
        this.#finish(events);
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
    this.#usage.begin(message["usage"]);
    const usage = this.#usage.inputUsage;
    const id = textAt(message, "id");
    const model = textAt(message, "model");
    return create(GenerateEventSchema, {
      kind: { case: "start", value: { id, model, ...(usage && { usage }) } },
    });
  }

  #onMessageDelta(record: JsonRecord): void {
    this.#usage.add(record["usage"]);
    const ending = readEnding(recordAt(record, "delta") ?? {});
    if (ending.stopReason !== StopReason.UNSPECIFIED) this.#ending = ending;
  }

  #see(events: readonly GenerateEvent[]): void {
    for (const { kind } of events) if (kind.case === "partStart") this.#seen.add(kind.value.part);
  }

  /** Ends the reply, and blocks that its vendor has not ended. */
  #finish(events: GenerateEvent[]): void {
    this.#blocks.stopAll(events);
    this.#see(events);
    events.push(this.#end());
  }

  #end(): GenerateEvent {
    this.#isOver = true;
    const { usage } = this;
    const serviceTier = readServedTier(this.#usage.serviceTier);
    const reported = this.#ending?.stopReason ?? StopReason.UNSPECIFIED;
    const stopReason = reconciledEnd(reported, this.#seen);
    if (stopReason === undefined) return this.#fail({ message: missingCall });
    const value = { ...this.#ending, stopReason, serviceTier, ...(usage && { usage }) };
    return create(GenerateEventSchema, { kind: { case: "end", value } });
  }

  #fail(error: JsonRecord): GenerateEvent {
    this.#isOver = true;
    const code = failureCode(textAt(error, "type"));
    const message = textAt(error, "message");
    return create(GenerateEventSchema, { kind: { case: "error", value: { code, message } } });
  }
}
