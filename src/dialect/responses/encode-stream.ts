/**
 * A streamed reply as a streamed response. Clients follow it with a strict state machine: items are
 * added in the order of their places, every event names its item, and the last one holds the same
 * items again.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { OpaquePart, Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type {
  GenerateEvent,
  PartDelta,
  PartStart,
  ReplyEnd,
  ReplyStart,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { ErrorCode, GatewayError, type SentErrorCode } from "../../core/errors.ts";
import type { ReplyOptions, StreamEncoder } from "../codec.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { contentType } from "./decode-content.ts";
import { callType, dropExtras, type ItemStatus, OutputIds, phaseIn } from "./encode-reply.ts";
import {
  CallWriter,
  EventWriter,
  itemAdded,
  itemDone,
  type ItemPlace,
  type PartWriter,
} from "./event-writer.ts";
import { endingOf, lostEndingNames } from "./finish-reason.ts";
import { ResponseWriter } from "./response-json.ts";
import type { ItemType } from "./wire.ts";
import { MessageWriter, ReasoningWriter } from "./encode-stream-parts.ts";

/** Implements {@link CallerCodec.encodeStream}. */
export class ResponsesStreamEncoder implements StreamEncoder {
  readonly #options: ReplyOptions;
  readonly #events = new EventWriter();
  readonly #names: OutputIds;
  readonly #parts = new Map<number, PartWriter>();
  /** The items that are complete, as JSON, by their place. */
  readonly #output: string[] = [];
  #items = 0;
  /** The call that ended last. Only later events show whether it was cut off. */
  #endedCall: number | undefined;
  /** The message that ends the output so far, if one does. */
  #message: MessageWriter | undefined;
  #response: ResponseWriter | undefined;
  #refused = false;
  #usage: Usage | undefined;

  constructor(options: ReplyOptions) {
    this.#options = options;
    this.#names = new OutputIds(options.callId, (name) => options.onDropped(name));
  }

  push({ kind }: GenerateEvent): string {
    switch (kind.case) {
      case "partDelta":
        return this.#delta(kind.value);
      case "partStart":
        return this.#endCall("completed") + this.#startPart(kind.value);
      case "partEnd":
        return this.#onPartEnd(kind.value.index);
      case "start":
        return this.#start(kind.value);
      case "end":
        return this.#end(kind.value);
      case "error": {
        const { code, message } = kind.value;
        const sent = code === ErrorCode.UNSPECIFIED ? ErrorCode.UPSTREAM_ERROR : code;
        return this.fail(new GatewayError(sent as SentErrorCode, message));
      }
      case undefined:
      default:
        return "";
    }
  }

  fail(error: GatewayError): string {
    return this.#events.error(error);
  }

  #start({ created, usage }: Pick<ReplyStart, "created" | "usage">): string {
    this.#response = new ResponseWriter(this.#options, created);
    this.#usage = usage;
    const response = this.#response.write({
      status: "in_progress",
      details: null,
      output: [],
      usage: undefined,
      serviceTier: "",
    });
    return (
      this.#events.event("response.created", `"response":${response}`) +
      this.#events.event("response.in_progress", `"response":${response}`)
    );
  }

  #startPart({ index, part }: PartStart): string {
    if (part === undefined) return "";
    dropExtras(part.extras, this.#names);
    const { kind } = part;
    switch (kind.case) {
      case "text":
        return this.#content(index, "text", part) + this.#begunText(index, kind.value.text);
      case "refusal":
        this.#refused = true;
        return this.#content(index, "refusal", part) + this.#begunText(index, kind.value.text);
      case "toolCall": {
        const call = kind.value;
        const closing = this.#leaveMessage();
        const place = this.#place(callType(call), call.itemId);
        const callId = this.#names.call(place.at, call.id);
        return closing + this.#open(index, new CallWriter(place, call, callId));
      }
      case "reasoning": {
        const closing = this.#leaveMessage();
        const place = this.#place("reasoning", kind.value.itemId);
        return closing + this.#open(index, new ReasoningWriter(place, kind.value));
      }
      case "opaque":
        return this.#whole(kind.value);
      case "media":
      case "toolResult":
      case undefined:
      default:
        this.#names.drop(kind.case ?? "part");
        return "";
    }
  }

  #delta({ index, delta }: PartDelta): string {
    return this.#parts.get(index)?.delta(delta) ?? "";
  }

  #onPartEnd(index: number): string {
    const ended = this.#endCall("completed");
    if (!(this.#parts.get(index) instanceof CallWriter)) {
      return ended + this.#endPart(index, "completed");
    }
    this.#endedCall = index;
    return ended;
  }

  #endCall(status: ItemStatus): string {
    const index = this.#endedCall;
    this.#endedCall = undefined;
    return index === undefined ? "" : this.#endPart(index, status);
  }

  #endPart(index: number, status: ItemStatus): string {
    const part = this.#parts.get(index);
    this.#parts.delete(index);
    return part?.end(status) ?? "";
  }

  #end(end: ReplyEnd): string {
    const { stopReason, stopDetail, usage, serviceTier } = end;
    const ending = endingOf(stopReason, stopDetail, { calls: false, refusal: this.#refused });
    const { status, details } = ending;
    for (const name of lostEndingNames(end, ending)) this.#names.drop(name);
    let out = this.#response === undefined ? this.#start({ created: 0n }) : "";
    out += this.#endCall(status);
    for (const index of this.#parts.keys()) out += this.#endPart(index, status);
    if (ending.refusal !== "") out += this.#refuse(ending.refusal);
    out += this.#message?.done(status) ?? "";
    const response = this.#response?.write({
      status,
      details,
      output: this.#output,
      usage: usage ?? this.#usage,
      serviceTier,
    });
    return out + this.#events.event(`response.${status}`, `"response":${response}`);
  }

  /** Writes the vendor's explanation as content, because the style has no other place for it. */
  #refuse(refusal: string): string {
    const index = -1;
    const begun = this.#content(index, "refusal", undefined);
    return begun + this.#begunText(index, refusal) + this.#endPart(index, "completed");
  }

  #content(index: number, type: "text" | "refusal", part: Part | undefined): string {
    const phase = part === undefined ? "" : phaseIn(part.extras);
    let out = "";
    let message = this.#message;
    if (message === undefined || message.phase !== phase) {
      out = this.#leaveMessage();
      message = new MessageWriter(this.#place("message"), this.#names, phase);
      this.#message = message;
      out += message.begin();
    }
    const added = message;
    const onEnd = (): string =>
      this.#message !== added && added.isIdle ? added.done("completed") : "";
    return out + this.#open(index, added.part(type, onEnd));
  }

  #begunText(index: number, value: string): string {
    return value === "" ? "" : (this.#parts.get(index)?.delta({ case: "text", value }) ?? "");
  }

  #open(index: number, part: PartWriter): string {
    this.#parts.set(index, part);
    return part.begin();
  }

  /** Something else follows: a message with nothing under way is complete. */
  #leaveMessage(): string {
    const message = this.#message;
    this.#message = undefined;
    return message?.isIdle === true ? message.done("completed") : "";
  }

  #place(type: ItemType, givenId = ""): ItemPlace {
    const at = this.#items++;
    return {
      events: this.#events,
      at,
      id: this.#names.item(type, at, givenId),
      onItem: (index, json) => {
        this.#output[index] = json;
      },
    };
  }

  /** Writes parts that only vendors of this style send. */
  #whole({ dialect, type, json }: OpaquePart): string {
    if (dialect !== Dialect.RESPONSES || contentType.test(type)) {
      this.#names.drop(type);
      return "";
    }
    const item = new JsonText(json);
    const closing = this.#leaveMessage();
    const at = this.#items++;
    const place: ItemPlace = {
      events: this.#events,
      at,
      id: "",
      onItem: (index, text) => {
        this.#output[index] = text;
      },
    };
    return closing + itemAdded(place, item) + itemDone(place, item);
  }
}
