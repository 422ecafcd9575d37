/** Relays replies. Bytes pass unchanged except for the model name. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { GatewayError } from "../../core/errors.ts";
import { errorBody } from "../codec.ts";
import type { RelayedReply, RelayOptions } from "../dialect.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { ObjectScan, openBrace, quote, skipSpace } from "../../wire/json/scan.ts";
import { changeMembers } from "../../wire/json/source.ts";
import { Splicer } from "../../wire/json/splice.ts";
import { isRecord, type JsonRecord, parseRecord, textAt } from "../../wire/json/value.ts";
import { EventRelay, restoreReplyModel } from "../event-relay.ts";
import { EventDataReader } from "../../wire/sse/event-stream.ts";
import { StreamedInput } from "../streamed-input.ts";
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
import { EventWriter, membersOf } from "./event-writer.ts";
import { failureOf } from "./errors.ts";
import { readUsage, usageJson } from "./usage.ts";

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

/** Implements {@link VendorCodec.addedTextBytes}. Events that end a text, a part, an item or the response repeat it: vendors
 * that send no deltas send it there. */
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

/** Bytes of text that an event without a delta adds to `knownBytes`: such events repeat what has come. */
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
  /** What was relayed, for {@link stop}: the last event repeats the reply. */
  readonly #output: RelayedOutput;
  #nextSequence = 0;
  /** Whether an error about the operator's account was replaced: nothing more of it is relayed. */
  #isFaultHidden = false;

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
   * Relays an error with the strings that the style promises. One about the operator's account becomes the gateway's own,
   * and its summary is hidden.
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
      return this.replaceEvent(this.errorEvent(outOfService()));
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

  /** Gives the last event the items that came before it, if it has no output: clients take the reply from it. */
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

/** Bytes of text in a response's output: messages, refusals, reasoning, calls. @param tools counts the vendor's tools */
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

// Tracks the output of a relayed stream, so that the gateway can end it before its vendor does. The last event
// repeats the whole output.

/** A kind of text with deltas. */
interface TextKind {
  /** The member with the index of a part; `undefined` where the text is the item's own. */
  readonly index?: "content_index" | "summary_index";
  /** The member of the part, or item, that contains the text. */
  readonly member: "text" | "refusal" | "arguments" | "input" | "code";
  /** The initial part, where the vendor does not announce one. */
  readonly part?: JsonRecord;
}

const content = "content_index";
const text = { index: content, member: "text" } as const;

/** By the event type's prefix before `.delta`. */
const textKinds: ReadonlyMap<string, TextKind> = new Map<string, TextKind>([
  ["response.output_text", { ...text, part: { type: "output_text", annotations: [] } }],
  ["response.refusal", { index: content, member: "refusal", part: { type: "refusal" } }],
  ["response.reasoning_text", { ...text, part: { type: "reasoning_text" } }],
  [
    "response.reasoning_summary_text",
    { index: "summary_index", member: "text", part: { type: "summary_text" } },
  ],
  ["response.function_call_arguments", { member: "arguments" }],
  ["response.custom_tool_call_input", { member: "input" }],
  ["response.mcp_call_arguments", { member: "arguments" }],
  ["response.code_interpreter_call_code", { member: "code" }],
]);

/** A text, open or complete. */
interface OpenText {
  /** The event type's prefix before `.delta`. */
  readonly type: string;
  readonly deltaType: string;
  readonly kind: TextKind;
  /** Index of its item in the output. */
  readonly at: number;
  readonly index: number;
  /** The text so far, as JSON, in Latin-1. */
  raw: string;
  /** Follows arguments, which some vendors send again behind their pieces. Absent: it is another text. */
  readonly input: StreamedInput | undefined;
  /** Whether the vendor has sent it in full. */
  isComplete: boolean;
}

/** A content or summary part of an item. */
interface OpenPart {
  json: string;
  /** Whether the vendor announced it, and whether it ended it. */
  readonly isAnnounced: boolean;
  isDone: boolean;
}

/** The events of the parts of a list. */
const partEvents = {
  content_index: "response.content_part",
  summary_index: "response.reasoning_summary_part",
} as const;

/** Tracks one item. */
class RelayedItem {
  readonly #at: number;
  readonly #item: JsonRecord;
  readonly #json: string;
  readonly #parts = { content_index: [] as OpenPart[], summary_index: [] as OpenPart[] };
  readonly #texts: OpenText[] = [];

  /** @param item as announced at index `at` @param json its text */
  constructor(at: number, item: JsonRecord, json: string) {
    this.#at = at;
    this.#item = item;
    this.#json = json;
  }

  /** Finds or creates the text of a kind and index. */
  text(type: string, kind: TextKind, index: number): OpenText {
    const known = this.#texts.find((each) => each.type === type && each.index === index);
    if (known !== undefined) return known;
    const deltaType = `${type}.delta`;
    const input = kind.member === "arguments" ? new StreamedInput() : undefined;
    const begun = { type, deltaType, kind, at: this.#at, index, input, raw: "", isComplete: false };
    this.#texts.push(begun);
    if (kind.index !== undefined) {
      this.#parts[kind.index][index] ??= openPart(JSON.stringify(kind.part ?? {}), {
        isAnnounced: false,
      });
    }
    return begun;
  }

  /** Reads an event other than a delta. */
  event(type: string, event: ObjectScan): void {
    for (const list of ["content_index", "summary_index"] as const) {
      const index = event.count(list);
      if (index < 0 || !type.startsWith(partEvents[list])) continue;
      const part = event.json("part");
      const json = parseRecord(part) === undefined ? "{}" : part;
      const isDone = type.endsWith(".done");
      const isAnnounced = !isDone || this.#parts[list][index]?.isAnnounced === true;
      this.#parts[list][index] = { ...openPart(json, { isAnnounced }), isDone };
      return;
    }
    const kind = textKinds.get(type.replace(/\.done$/, ""));
    if (kind === undefined) return;
    const index = kind.index === undefined ? 0 : event.count(kind.index);
    const open = this.text(type.slice(0, -".done".length), kind, index);
    // Latin-1, like deltas.
    open.raw = event.string(kind.member);
    open.isComplete = true;
  }

  /** Closes the item: the events, and the item as JSON. */
  stop(
    events: EventWriter,
    status: "incomplete" | "completed" = "incomplete",
  ): { written: string; json: string } {
    const own: Record<string, string> = {};
    let written = "";
    for (const open of this.#texts) {
      const value = JSON.parse(`"${Buffer.from(open.raw, "latin1").toString("utf8")}"`) as string;
      const { index, member } = open.kind;
      if (index === undefined) own[member] = JSON.stringify(value);
      else this.#tell(open, index, value);
      if (!open.isComplete)
        written += events.event(`${open.type}.done`, this.#members(open, value));
      if (index !== undefined) written += this.#endPart(open, index, events);
    }
    const json = changeMembers(this.#json, { ...own, ...this.#lists(), ...this.#status(status) });
    return {
      json,
      written:
        written +
        events.event("response.output_item.done", `"output_index":${this.#at},"item":${json}`),
    };
  }

  #tell({ kind, index }: OpenText, list: keyof typeof partEvents, value: string): void {
    const open = this.#parts[list][index];
    if (open === undefined || open.isDone) return;
    open.json = changeMembers(open.json, { [kind.member]: JSON.stringify(value) });
  }

  #members({ kind, index }: OpenText, value: string): string {
    const { name, type } = this.#item;
    return membersOf({
      item_id: this.#item["id"],
      output_index: this.#at,
      ...(kind.index !== undefined && { [kind.index]: index }),
      ...(kind.member === "arguments" && type === "function_call" && { name }),
      [kind.member]: value,
      ...(kind.part?.["type"] === "output_text" && { logprobs: [] }),
    });
  }

  #endPart({ index }: OpenText, list: keyof typeof partEvents, events: EventWriter): string {
    const open = this.#parts[list][index];
    if (open === undefined || open.isDone || !open.isAnnounced) return "";
    open.isDone = true;
    const place = { item_id: this.#item["id"], output_index: this.#at, [list]: index };
    return events.event(
      `${partEvents[list]}.done`,
      membersOf({ ...place, part: new JsonText(open.json) }),
    );
  }

  /** The part lists, where there are any. */
  #lists(): Readonly<Record<string, string>> {
    const { content_index: contents, summary_index: summaries } = this.#parts;
    const json = (parts: readonly OpenPart[]): string =>
      `[${Object.values(parts)
        .map((part) => part.json)
        .join(",")}]`;
    return {
      ...(contents.length > 0 && { content: json(contents) }),
      ...(summaries.length > 0 && { summary: json(summaries) }),
    };
  }

  #status(status: string): Readonly<Record<string, string>> {
    return "status" in this.#item ? { status: JSON.stringify(status) } : {};
  }
}

function openPart(json: string, { isAnnounced }: { readonly isAnnounced: boolean }): OpenPart {
  return { json, isAnnounced, isDone: false };
}

/**
 * Tracks the whole output. A delta costs one copy of its text; completed items are kept as the vendor sent them.
 */
class RelayedOutput {
  readonly #publicModel: string | undefined;
  /** The initial response, as JSON. */
  #response = "";
  /** Completed items as JSON, by index. */
  readonly #done = new Map<number, string>();
  readonly #open = new Map<number, RelayedItem>();
  /** Indexes by the ids of items, for events without an index. */
  readonly #indexes = new Map<string, number>();
  /** The text of the latest deltas. */
  #text: OpenText | undefined;

  /** @param publicModel replaces the vendor's model name; `undefined` keeps it */
  constructor(publicModel: string | undefined) {
    this.#publicModel = publicModel;
  }

  /** Reads a delta. @returns whether it repeats the whole arguments of a call: clients would join both */
  delta(event: ObjectScan): boolean {
    // Nearly every delta continues the previous text; this is detected without creating a string of its type.
    if (!isOf(this.#text, event)) this.#text = this.#textOf(event);
    const open = this.#text;
    if (open === undefined) return false;
    if (open.input !== undefined) {
      const piece = String(event.value("delta"));
      if (open.input.isRepeatedBy(piece)) return true;
      open.input.add(piece);
    }
    open.raw += event.string("delta");
    return false;
  }

  #textOf(event: ObjectScan): OpenText | undefined {
    const type = event.string("type").slice(0, -".delta".length);
    const kind = textKinds.get(type);
    if (kind === undefined) return undefined;
    const index = kind.index === undefined ? 0 : event.count(kind.index);
    return this.#open.get(this.#indexOf(event))?.text(type, kind, index);
  }

  /** Reads another event. */
  event(type: string, event: ObjectScan): void {
    this.#text = undefined;
    if (event.find("response") >= 0) {
      this.#response ||= event.json("response");
      return;
    }
    const at = this.#indexOf(event);
    if (type === "response.output_item.added") {
      const json = event.json("item");
      const item = parseRecord(json);
      if (item !== undefined) this.#open.set(at, new RelayedItem(at, item, json));
    } else if (type === "response.output_item.done") {
      this.#open.delete(at);
      this.#done.set(at, event.json("item"));
    } else {
      this.#open.get(at)?.event(type, event);
    }
  }

  /** The index of an event's item. Without one, items are numbered in the order in which they begin. */
  #indexOf(event: ObjectScan): number {
    const index = event.count("output_index");
    if (index >= 0) return index;
    const id = event.string("item_id") || textAt(parseRecord(event.json("item")) ?? {}, "id");
    const known = this.#indexes.get(id) ?? this.#done.size + this.#open.size;
    if (id !== "") this.#indexes.set(id, known);
    return known;
  }

  /** The items so far, as JSON. */
  items(): string[] {
    const items = new Map(this.#done);
    for (const [at, item] of this.#open) {
      items.set(at, item.stop(new EventWriter(0), "completed").json);
    }
    return [...items].toSorted(([a], [b]) => a - b).map(([, json]) => json);
  }

  /** Closes everything open and writes the last event. @param sequence number of the first event */
  stop(usage: Usage | undefined, sequence: number): string {
    const events = new EventWriter(sequence);
    let out = "";
    for (const [at, item] of [...this.#open].toSorted(([a], [b]) => a - b)) {
      const { written, json } = item.stop(events);
      out += written;
      this.#done.set(at, json);
    }
    const output = [...this.#done].toSorted(([a], [b]) => a - b).map(([, json]) => json);
    return out + events.event("response.incomplete", `"response":${this.#ended(output, usage)}`);
  }

  #ended(output: readonly string[], usage: Usage | undefined): string {
    const begun = parseRecord(this.#response) === undefined ? "{}" : this.#response;
    const model = this.#publicModel;
    return changeMembers(changeMembers(begun, { output: undefined }), {
      status: '"incomplete"',
      incomplete_details: '{"reason":"max_output_tokens"}',
      ...(model !== undefined && { model: JSON.stringify(model) }),
      usage: JSON.stringify(usageJson(usage)),
      output: `[${output.join(",")}]`,
    });
  }
}

/** Whether a delta belongs to a text. */
function isOf(open: OpenText | undefined, event: ObjectScan): boolean {
  return (
    open !== undefined &&
    // Without an index the item must be looked for.
    event.count("output_index") === open.at &&
    (open.kind.index === undefined || event.count(open.kind.index) === open.index) &&
    event.is("type", open.deltaType)
  );
}
