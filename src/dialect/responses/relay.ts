/** Relays replies. Bytes pass unchanged except for the model name. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { RelayedReply, RelayOptions } from "../dialect.ts";
import { errorBody } from "../codec.ts";
import { EventRelay, restoreReplyModel } from "../sse/event-relay.ts";
import { isRecord, recordAt, textAt } from "../json/value.ts";
import { ObjectScan } from "../json/object-scan.ts";
import { ToolCallCount, toolOfItem } from "../tool-calls.ts";
import { reportedUsage } from "../usage.ts";
import { RelayedOutput } from "./relay-output.ts";

/** Implements {@link TextDialect.relayReply}. */
export function relayResponsesReply(body: Buffer, options: RelayOptions): RelayedReply {
  const scan = new ObjectScan().scan(body, 0, body.length);
  const tools = new ToolCallCount();
  return {
    body: restoreReplyModel(body, scan, options),
    usage: readUsage(scan.value("usage")),
    textBytes: outputTextBytes(body, scan, tools),
    units: tools.calls,
  };
}

/** Implements {@link TextDialect.relayStream}. */
export class ResponsesStreamRelay extends EventRelay {
  readonly #event = new ObjectScan();
  readonly #response = new ObjectScan();
  /** What was relayed, for {@link stop}: the last event repeats the reply. */
  readonly #output: RelayedOutput;
  #nextSequence = 0;

  constructor(options: RelayOptions) {
    super(options);
    this.#output = new RelayedOutput(options.publicModel);
  }

  /** In both forms in use: nested, as the live service sends and older SDKs expect, and flat, as documented. */
  errorEvent(error: GatewayError): Buffer {
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

  stop(usage: Usage | undefined): Buffer {
    return Buffer.from(this.#output.stop(usage, this.#nextSequence));
  }

  protected onData(bytes: Buffer, start: number, end: number): void {
    const event = this.#event.scan(bytes, start, end);
    const type = event.find("type");
    // After an error only its summary follows, and no other terminal event.
    if (this.failed && !event.is("type", "response.failed")) return this.hideEvent();
    this.#onSequence();
    if (isDelta(bytes, event.end(type))) {
      if (!event.is("type", "response.audio.delta")) this.textBytes += event.stringBytes("delta");
      this.#output.delta(event);
      return;
    }
    const name = event.string("type") || this.eventName();
    this.#output.event(name, event);
    if (name === "response.output_item.done") this.#onItem(bytes, event);
    this.#onEvent(name);
    const response = event.find("response");
    if (response >= 0) {
      this.#onResponse(bytes, event.start(response), event.end(response));
    }
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
    return Boolean(this.#event.value("error"));
  }

  #onResponse(bytes: Buffer, start: number, end: number): void {
    const response = this.#response.scan(bytes, start, end);
    this.restoreModel(response);
    this.usage = readUsage(response.value("usage")) ?? this.usage;
    // A vendor that reports no usage, and streams no text or items.
    if (this.done && this.textBytes === 0) {
      const tools = this.tools.calls === undefined ? this.tools : undefined;
      this.textBytes = outputTextBytes(bytes, response, tools);
    }
  }

  #onSequence(): void {
    const sequence = this.#event.count("sequence_number");
    if (sequence >= 0) this.#nextSequence = sequence + 1;
  }
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

/** Bytes of text in a response's output: messages, refusals, reasoning, calls. @param tools counts the vendor's tools */
function outputTextBytes(
  bytes: Buffer,
  response: ObjectScan,
  tools: ToolCallCount | undefined,
): number {
  const item = new ObjectScan();
  const part = new ObjectScan();
  let size = 0;
  for (const { start, end } of response.elements("output")) {
    item.scan(bytes, start, end);
    if (tools !== undefined) countTool(tools, item);
    for (const name of ["arguments", "input", "code"]) size += item.stringBytes(name);
    for (const place of [...item.elements("content"), ...item.elements("summary")]) {
      part.scan(bytes, place.start, place.end);
      size += part.stringBytes("text") + part.stringBytes("refusal");
    }
  }
  return size;
}

function readUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const input = recordAt(usage, "input_tokens_details");
  return reportedUsage({
    input: usage["input_tokens"],
    cached: input?.["cached_tokens"],
    written: input?.["cache_write_tokens"],
    output: usage["output_tokens"],
    reasoning: recordAt(usage, "output_tokens_details")?.["reasoning_tokens"],
  });
}
