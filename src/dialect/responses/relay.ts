/** Relays replies. Bytes pass unchanged except for the model name. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { errorBody } from "../codec.ts";
import type { RelayedReply, RelayOptions } from "../dialect.ts";
import { ObjectScan, openBrace, quote, skipSpace } from "../../wire/json/scan.ts";
import { Splicer } from "../../wire/json/splice.ts";
import { isRecord, parseRecord, textAt } from "../../wire/json/value.ts";
import { EventRelay, restoreReplyModel } from "../event-relay.ts";
import { EventDataReader } from "../../wire/sse/event-stream.ts";
import { ToolCallCount, toolOfItem } from "../tools/tool-calls.ts";
import { grownUsage } from "../features/usage.ts";
import {
  errorFacts,
  type ErrorWords,
  errorWords,
  hasError,
  isOperatorFault,
  outOfService,
  refuseErrorReply,
  streamErrorCode,
  withErrorWords,
} from "../vendor-error.ts";
import { failureOf } from "./errors.ts";
import { readUsage } from "./usage.ts";
import { RelayedOutput } from "./relayed-output.ts";

/**
 * Implements {@link TextDialect.relayReply}.
 *
 * @throws GatewayError if the response failed; UnreadableReplyError if the body is an error
 */
export function relayResponsesReply(body: Buffer, options: RelayOptions): RelayedReply {
  const scan = new ObjectScan().scan(body, 0, body.length);
  refuseErrorReply(scan, "output");
  if (scan.is("status", "failed")) {
    const { code, message } = failureOf({ error: scan.value("error") });
    throw new GatewayError(code, message);
  }
  const tools = new ToolCallCount();
  return {
    body: restoreReplyModel(body, scan, options),
    usage: readUsage(scan.value("usage"), (name) => scan.value(name)),
    textBytes: outputTextBytes(body, scan, tools),
    units: tools.calls,
  };
}

/**
 * Implements {@link VendorCodec.addedTextBytes}. Events that end a text, a part, an item or the
 * response repeat it: vendors that send no deltas send it there.
 */
export function addedResponsesText(event: Buffer, knownBytes: number): number {
  let textBytes = 0;
  const scan = new ObjectScan();
  new EventDataReader().read([event], (data) => {
    const bytes = Buffer.from(data);
    if (bytes[0] !== openBrace) return;
    scan.scan(bytes, 0, bytes.length);
    textBytes += eventTextBytes(bytes, scan, knownBytes);
  });
  return textBytes;
}

function eventTextBytes(bytes: Buffer, event: ObjectScan, knownBytes: number): number {
  if (event.kind("delta") !== quote) return newTextBytes(bytes, event, knownBytes);
  return event.is("type", "response.audio.delta") ? 0 : event.stringBytes("delta");
}

/**
 * Bytes of text that an event without a delta adds to `knownBytes`: such events repeat what has
 * come.
 */
function newTextBytes(bytes: Buffer, event: ObjectScan, knownBytes: number): number {
  const inner = new ObjectScan();
  const within = (name: string): ObjectScan | undefined => {
    const at = event.find(name);
    return at < 0 ? undefined : inner.scan(bytes, event.start(at), event.end(at));
  };
  let repeated = stringsBytes(event);
  const part = within("part");
  if (part !== undefined) repeated += stringsBytes(part);
  const item = within("item");
  if (item !== undefined) repeated += itemTextBytes(bytes, item);
  const response = within("response");
  if (response !== undefined) repeated += outputTextBytes(bytes, response, undefined);
  return Math.max(0, repeated - knownBytes);
}

/** Implements {@link TextDialect.relayStream}. */
export class ResponsesStreamRelay extends EventRelay {
  readonly #event = new ObjectScan();
  readonly #response = new ObjectScan();
  /** The relayed output, for {@link stop}: the last event repeats the reply. */
  readonly #output: RelayedOutput;
  #nextSequence = 0;
  /** Whether an error about the operator's account was replaced: nothing more of it is relayed. */
  #isFaultHidden = false;

  constructor(options: RelayOptions) {
    super(options);
    this.#output = new RelayedOutput(options.publicModel, this.inputs);
  }

  /**
   * In both forms in use: nested, as the live service sends and older SDKs expect, and flat, as
   * documented.
   */
  protected failureEvent(error: GatewayError): Buffer {
    const { error: told } = errorBody(error);
    const { word } = error.meaning;
    const event = {
      type: "error",
      sequence_number: this.#nextSequence,
      code: word,
      message: error.message,
      param: error.param ?? null,
      error: told,
    };
    return Buffer.from(`event: error\ndata: ${JSON.stringify(event)}\n\n`);
  }

  protected stopEvents(usage: Usage | undefined): Buffer {
    return Buffer.from(this.#output.stop(usage, this.#nextSequence));
  }

  protected onData(bytes: Buffer, start: number, end: number): void {
    const event = this.#event.scan(bytes, start, end);
    const type = event.find("type");
    // Behind its terminal event a reply has nothing; behind an error only its summary.
    const isOver = this.done || this.#isFaultHidden;
    if (isOver || (this.failed && !event.is("type", "response.failed"))) {
      if (bytes[skipSpace(bytes, start, end)] === openBrace) this.hideEvent();
      return;
    }
    this.#onSequence();
    if (isDelta(bytes, event.end(type))) {
      if (this.#output.delta(event)) return this.#withoutDelta(bytes, start, end);
      if (!event.is("type", "response.audio.delta")) this.textBytes += event.stringBytes("delta");
      return;
    }
    const name = event.string("type") || this.eventName();
    this.#output.event(name, event);
    if (name === "response.output_item.done") this.#onItem(bytes, event);
    this.#onEvent(name);
    if (this.failed) return this.#onFailure(name, bytes, start, end);
    const response = event.find("response");
    if (response >= 0) {
      this.#onResponse(bytes, event.start(response), event.end(response));
      if (this.done) this.#onEnd(bytes, start, end);
      else this.restoreModel(this.#response);
    }
    this.textBytes += newTextBytes(bytes, event, this.textBytes);
  }

  /**
   * Relays an error with the strings that the style promises. One about the operator's account
   * becomes the gateway's own, and its summary is hidden.
   */
  #onFailure(name: string, bytes: Buffer, start: number, end: number): void {
    const event = this.#event;
    const response = this.#response.scan(bytes, 0, 0);
    const summary = event.find("response");
    if (summary >= 0) response.scan(bytes, event.start(summary), event.end(summary));
    this.usage = grownUsage(
      this.usage,
      readUsage(response.value("usage"), (member) => response.value(member)),
    );
    const nested = event.value("error") ?? response.value("error");
    const facts = errorFacts(
      isRecord(nested) || typeof nested === "string"
        ? nested
        : parseRecord(bytes.toString("utf8", start, end)),
    );
    if (isOperatorFault(facts)) {
      this.#isFaultHidden = true;
      return this.replaceEvent(this.failureEvent(outOfService()));
    }
    const sent = bytes.subarray(start, end);
    const words = errorWords(streamErrorCode(facts));
    const places: [string[], ErrorWords][] = [
      [["response", "error"], { code: words.code }],
      [["error"], words],
    ];
    // In the flat form, and where both are in use.
    if (name === "error" && (!isRecord(event.value("error")) || event.find("code") >= 0)) {
      places.push([[], { code: words.code }]);
    }
    let json: Buffer = sent;
    for (const [path, each] of places) json = withErrorWords(json, path, each) ?? json;
    json = this.restoredModel(json, "response");
    if (json !== sent) this.replaceData(start, end, json);
  }

  /** Empties a delta. Its event stays, since events are numbered. */
  #withoutDelta(bytes: Buffer, start: number, end: number): void {
    const json = bytes.subarray(start, end);
    const scan = new ObjectScan().scan(json, 0, json.length);
    const delta = scan.find("delta");
    const splicer = new Splicer();
    splicer.replace(scan.start(delta), scan.end(delta), Buffer.from('""'));
    this.replaceData(start, end, splicer.apply(json, json.length));
  }

  #onItem(bytes: Buffer, event: ObjectScan): void {
    const item = event.find("item");
    if (item < 0) return;
    const { tools } = this;
    countTool(tools, this.#response.scan(bytes, event.start(item), event.end(item)));
  }

  #onEvent(type: string): void {
    if (type === "response.completed" || type === "response.incomplete") {
      this.finished = this.done = true;
    } else if (type === "response.failed" || type === "error" || this.#hasError()) {
      this.failed = true;
    }
  }

  /** The style's SDK treats any event with an `error` member as a failure. */
  #hasError(): boolean {
    return hasError(this.#event);
  }

  #onResponse(bytes: Buffer, start: number, end: number): void {
    const response = this.#response.scan(bytes, start, end);
    this.usage = grownUsage(
      this.usage,
      readUsage(response.value("usage"), (name) => response.value(name)),
    );
    // A vendor that reports no usage, and streams no text or items.
    if (this.done && this.textBytes === 0) {
      const tools = this.tools.calls === undefined ? this.tools : undefined;
      this.textBytes = outputTextBytes(bytes, response, tools);
    }
  }

  /**
   * Gives the last event the items that came before it, if it has no output: clients take the reply
   * from it.
   */
  #onEnd(bytes: Buffer, start: number, end: number): void {
    const isEmpty = this.#response.elements("output").length === 0;
    const items = isEmpty ? this.#output.items() : [];
    if (items.length === 0) return this.restoreModel(this.#response);
    const json = withOutput(bytes.subarray(start, end), items);
    this.replaceData(start, end, this.restoredModel(json, "response"));
  }

  #onSequence(): void {
    const sequence = this.#event.count("sequence_number");
    if (sequence >= 0) this.#nextSequence = sequence + 1;
  }
}

/** A terminal event with this output in its response. */
function withOutput(json: Buffer, items: readonly string[]): Buffer {
  const scan = new ObjectScan().scan(json, 0, json.length);
  const response = scan.find("response");
  scan.scan(json, scan.start(response), scan.end(response));
  const output = scan.find("output");
  const list = `[${items.join(",")}]`;
  const splicer = new Splicer();
  if (output >= 0) splicer.replace(scan.start(output), scan.end(output), Buffer.from(list));
  else {
    const at = scan.end(scan.size - 1);
    splicer.replace(at, at, Buffer.from(`,"output":${list}`));
  }
  return splicer.apply(json, json.length);
}

/** Whether the string that ends at `end`, including its quote, is a delta's type. */
function isDelta(bytes: Buffer, end: number): boolean {
  return (
    bytes[end - 7] === 0x2e &&
    bytes[end - 6] === 0x64 &&
    bytes[end - 5] === 0x65 &&
    bytes[end - 4] === 0x6c &&
    bytes[end - 3] === 0x74 &&
    bytes[end - 2] === 0x61
  );
}

/** Counts an output item, if it is a call of a tool that the vendor runs. */
function countTool(tools: ToolCallCount, item: ObjectScan): void {
  const type = item.string("type");
  if (!type.endsWith("_call")) return;
  const action = item.value("action");
  tools.add(toolOfItem(type, isRecord(action) ? textAt(action, "type") : ""));
}

/**
 * Bytes of text in a response's output: messages, refusals, reasoning, calls. @param tools counts
 * the vendor's tools
 */
function outputTextBytes(
  bytes: Buffer,
  response: ObjectScan,
  tools: ToolCallCount | undefined,
): number {
  const item = new ObjectScan();
  let size = 0;
  for (const { start, end } of response.elements("output")) {
    item.scan(bytes, start, end);
    if (tools !== undefined) countTool(tools, item);
    size += itemTextBytes(bytes, item);
  }
  return size;
}

function itemTextBytes(bytes: Buffer, item: ObjectScan): number {
  const part = new ObjectScan();
  let size = stringsBytes(item);
  for (const place of [...item.elements("content"), ...item.elements("summary")]) {
    size += stringsBytes(part.scan(bytes, place.start, place.end));
  }
  return size;
}

/** Bytes of an object's own texts. */
function stringsBytes(scan: ObjectScan): number {
  let size = 0;
  for (const name of ["text", "refusal", "arguments", "input", "code"]) {
    size += scan.stringBytes(name);
  }
  return size;
}
