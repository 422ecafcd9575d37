/** A whole reply as a response. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReplyOptions } from "../codec.ts";
import { contentType } from "./decode-content.ts";
import type { JsonRecord } from "../json/value.ts";
import { endingOf, lostOf, saidBy } from "./finish-reason.ts";
import {
  callItem,
  callType,
  dropExtras,
  type ItemStatus,
  messageItem,
  OutputNames,
  phaseIn,
  reasoningItem,
  refusalContent,
  textContent,
} from "./output.ts";
import { ResponseWriter } from "./response-json.ts";

/** See {@link CallerCodec.encodeReply}. */
export function encodeResponsesReply(reply: Reply, options: ReplyOptions): Buffer {
  const { parts, stopReason, stopDetail, usage, serviceTier, created } = reply;
  const names = new OutputNames(options.callId, (name) => options.onDropped(name));
  const ending = endingOf(stopReason, stopDetail, saidBy(parts));
  const output = new Output(names);
  for (const part of parts) output.add(part);
  if (ending.refusal !== "") output.message(refusalContent(ending.refusal), "");
  for (const name of lostOf(reply, ending)) names.drop(name);
  const { status, details } = ending;
  const text = new ResponseWriter(options, created).write({
    status,
    details,
    output: output.end(status),
    usage,
    serviceTier,
  });
  return Buffer.from(text);
}

/** The items of a reply. Texts and refusals that follow each other are one message. */
class Output {
  readonly #names: OutputNames;
  readonly #items: string[] = [];
  #content: JsonRecord[] = [];
  #phase = "";

  constructor(names: OutputNames) {
    this.#names = names;
  }

  add(part: Part): void {
    const { kind, extras } = part;
    dropExtras(extras, this.#names);
    switch (kind.case) {
      case "text": {
        const { text, citations } = kind.value;
        return this.message(textContent(text, citations, this.#names), phaseIn(extras));
      }
      case "refusal":
        return this.message(refusalContent(kind.value.text), phaseIn(extras));
      case "toolCall": {
        this.#endMessage("completed");
        const call = kind.value;
        const at = this.#items.length;
        const id = this.#names.item(callType(call), at, call.itemId);
        const callId = this.#names.call(at, call.id);
        return this.#push(callItem({ id, callId, call, input: call.input, status: "completed" }));
      }
      case "reasoning": {
        this.#endMessage("completed");
        const id = this.#names.item("reasoning", this.#items.length, kind.value.itemId);
        return this.#push(reasoningItem(id, kind.value));
      }
      case "opaque": {
        const { dialect, type, json } = kind.value;
        if (dialect !== Dialect.RESPONSES || contentType.test(type)) return this.#names.drop(type);
        this.#endMessage("completed");
        this.#items.push(json);
        return;
      }
      case "media":
      case "toolResult":
      case undefined:
      default:
        this.#names.drop(kind.case ?? "part");
    }
  }

  /** Adds a content part to the message under way. */
  message(content: JsonRecord, phase: string): void {
    if (phase !== this.#phase) this.#endMessage("completed");
    this.#phase = phase;
    this.#content.push(content);
  }

  /** All items, each as JSON. */
  end(status: ItemStatus): readonly string[] {
    this.#endMessage(status);
    return this.#items;
  }

  #endMessage(status: ItemStatus): void {
    if (this.#content.length === 0) return;
    const id = this.#names.item("message", this.#items.length);
    this.#push(messageItem({ id, status, content: this.#content, phase: this.#phase }));
    this.#content = [];
    this.#phase = "";
  }

  #push(item: JsonRecord): void {
    this.#items.push(JSON.stringify(item));
  }
}
