/** Relays replies. Bytes pass unchanged except for the model name. */
import type { GatewayError } from "../../core/errors.ts";
import type { RelayedReply, RelayOptions } from "../dialect.ts";
import { EventRelay, restoreReplyModel } from "../event-relay.ts";
import { isRecord, type JsonRecord, parseRecord } from "../../wire/json/value.ts";
import { ObjectScan, openBrace } from "../../wire/json/scan.ts";
import type { RelayedInput } from "../held-inputs.ts";
import { ToolCallCount, toolOfBlock } from "../tools/tool-calls.ts";
import {
  errorFacts,
  hasError,
  isOperatorFault,
  outOfService,
  refuseErrorReply,
  streamErrorCode,
  toStreamError,
  withErrorWords,
} from "../vendor-error.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { errorType, messagesErrorBody } from "./errors.ts";
import { lengthEnding, writeEnding } from "./finish-reason.ts";
import { estimatedUsage, readUsage, StreamUsage, writeUsage } from "./usage.ts";

/** Implements {@link TextDialect.relayReply}. */
export function relayMessagesReply(body: Buffer, options: RelayOptions): RelayedReply {
  const scan = new ObjectScan().scan(body, 0, body.length);
  refuseErrorReply(scan, "content");
  const usage = scan.value("usage");
  const tools = new ToolCallCount();
  const textBytes = contentTextBytes(body, scan, tools);
  return {
    body: restoreReplyModel(body, scan, options),
    usage: isRecord(usage) ? readUsage(usage) : undefined,
    textBytes,
    units: tools.calls,
  };
}

/** Implements {@link VendorCodec.addedTextBytes}. */
export function addedMessagesText(event: Buffer): number {
  const relay = new MessagesStreamRelay({ publicModel: undefined, hideUsage: false, choices: 1 });
  relay.push([event]);
  return relay.textBytes;
}

/** Implements {@link TextDialect.relayStream}. */
export class MessagesStreamRelay extends EventRelay {
  readonly #event = new ObjectScan();
  readonly #inner = new ObjectScan();
  readonly #usage = new StreamUsage();
  /** Numbers of open blocks. */
  readonly #open = new Set<number>();
  /** The inputs of calls by the number of their block. */
  readonly #calls = new Map<number, RelayedInput>();

  protected failureEvent(error: GatewayError): Buffer {
    return Buffer.from(`event: error\ndata: ${JSON.stringify(messagesErrorBody(error, ""))}\n\n`);
  }

  /**
   * Open blocks are closed as they are, a thinking block without its signature, an input in its
   * middle.
   */
  protected stopEvents(usage: Usage | undefined): Buffer {
    const ends = [...this.#open].map((index) => frame("content_block_stop", { index }));
    const delta = writeEnding(lengthEnding, { hasToolCall: false, refusal: undefined });
    const usageJson = usage === undefined ? estimatedUsage(1) : writeUsage(usage);
    const last = frame("message_delta", { delta, usage: usageJson });
    return Buffer.from(`${ends.join("")}${last}${frame("message_stop", {})}`);
  }

  protected onData(bytes: Buffer, start: number, end: number): void {
    // Nothing follows an error, in particular no terminal event, and nothing a terminal event.
    if (this.failed || this.done) return this.hideEvent();
    const event = this.#event.scan(bytes, start, end);
    if (event.is("type", "content_block_delta")) {
      const delta = this.#member(bytes, "delta");
      const [name, ...others] = textNames.filter((each) => delta.stringBytes(each) > 0);
      if (name === undefined) return;
      if (name === "partial_json" && this.#isRepeated(event.count("index"), delta)) {
        return this.hideEvent();
      }
      if (name !== "partial_json") this.inputs.endAll();
      this.textBytes += delta.stringBytes(name);
      const text = delta.find(name);
      // Inputs are followed piece by piece.
      if (others.length === 0 && name !== "partial_json")
        this.learn(delta.start(text) + 1, delta.end(text) - 1);
      return;
    }
    switch (event.string("type") || this.eventName()) {
      case "message_start":
        return this.#onStart(bytes, this.#member(bytes, "message"));
      case "content_block_start": {
        this.#open.add(event.count("index"));
        this.#endCall(event.count("index"));
        const block = this.#member(bytes, "content_block");
        this.textBytes += blockTextBytes(block);
        countTool(this.tools, block);
        return;
      }
      case "content_block_stop":
        this.#open.delete(event.count("index"));
        this.#endCall(event.count("index"));
        return;
      case "message_delta":
        return this.#onMessageDelta(this.#member(bytes, "delta"));
      case "message_stop":
        this.finished = this.done = true;
        return;
      case "error":
        return this.#onFailure(bytes, start, end);
      default:
        if (hasError(event)) this.#onFailure(bytes, start, end);
    }
  }

  /**
   * Relays an error with the type that the style promises. One in another form, or about the
   * operator's account, becomes the gateway's own.
   */
  #onFailure(bytes: Buffer, start: number, end: number): void {
    this.failed = true;
    const event = this.#event;
    const error = event.value("error");
    const facts = errorFacts(error ?? parseRecord(bytes.toString("utf8", start, end)));
    const code = streamErrorCode(facts);
    if (isOperatorFault(facts)) return this.replaceEvent(this.failureEvent(outOfService()));
    const json = bytes.subarray(start, end);
    const isOwn = event.is("type", "error") && isRecord(error) && facts.message !== "";
    const edited = isOwn ? withErrorWords(json, ["error"], { type: errorType(code) }) : undefined;
    if (edited === undefined) this.replaceEvent(this.failureEvent(toStreamError(facts)));
    else if (edited !== json) this.replaceData(start, end, edited);
  }

  #onStart(bytes: Buffer, message: ObjectScan): void {
    this.restoreModel(message);
    this.textBytes += contentTextBytes(bytes, message, this.tools);
    this.#usage.begin(message.value("usage"));
    this.usage = this.#usage.usage;
  }

  #onMessageDelta(delta: ObjectScan): void {
    if (delta.stringBytes("stop_reason") > 0) {
      this.finished = true;
      this.inputs.endAll();
    }
    this.#usage.add(this.#event.value("usage"));
    this.usage = this.#usage.usage;
  }

  /**
   * Adds a piece to the input of a block. @returns whether it repeats the whole input instead:
   * clients would join both
   */
  #isRepeated(index: number, delta: ObjectScan): boolean {
    let call = this.#calls.get(index);
    if (call === undefined) this.#calls.set(index, (call = this.inputs.begin()));
    return this.inputs.read(call, String(delta.value("partial_json"))).isRepeated;
  }

  #endCall(index: number): void {
    const call = this.#calls.get(index);
    if (call === undefined) return;
    this.inputs.end(call);
    this.#calls.delete(index);
  }

  /** The members of one of the event's objects. */
  #member(bytes: Buffer, name: string): ObjectScan {
    const member = this.#event.find(name);
    return this.#inner.scan(bytes, this.#event.start(member), this.#event.end(member));
  }
}

function countTool(tools: ToolCallCount, block: ObjectScan): void {
  if (!block.is("type", "server_tool_use")) return;
  tools.add(toolOfBlock("server_tool_use", block.string("name")));
}

function frame(type: string, members: JsonRecord): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
}

/**
 * The members of a delta that contain text. Signatures and encrypted content are not the model's
 * text.
 */
const textNames = ["text", "partial_json", "thinking", "content"] as const;

/** Bytes of text in the content of a message. @param tools counts the vendor's tools */
function contentTextBytes(bytes: Buffer, message: ObjectScan, tools: ToolCallCount): number {
  const block = new ObjectScan();
  let textBytes = 0;
  for (const { start, end } of message.elements("content")) {
    textBytes += blockTextBytes(block.scan(bytes, start, end));
    countTool(tools, block);
  }
  return textBytes;
}

/** Bytes of text in a content block, whole or at its start. */
function blockTextBytes(block: ObjectScan): number {
  const text = block.stringBytes("text") + block.stringBytes("thinking");
  if (block.kind("input") !== openBrace) return text;
  const input = block.find("input");
  const inputBytes = block.end(input) - block.start(input);
  // The empty input at the start of calls.
  return text + (inputBytes > 2 ? inputBytes : 0);
}
