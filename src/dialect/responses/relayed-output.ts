/**
 * Tracks the output of a relayed stream, so that the gateway can end it before its vendor does. The
 * last event repeats the whole output.
 */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { ObjectScan } from "../../wire/json/scan.ts";
import { changeMembers } from "../../wire/json/source.ts";
import { type JsonRecord, parseRecord, textAt } from "../../wire/json/value.ts";
import type { HeldInputs, RelayedInput } from "../held-inputs.ts";
import { isPlaceholder } from "../streamed-input.ts";
import { EventWriter, membersOf } from "./event-writer.ts";
import { usageJson } from "./usage.ts";

/** A kind of text with deltas. */
interface TextKind {
  /** The member with the index of a part; `undefined` if the text is the item's own. */
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
  /** Follows arguments. Absent if it is another text. */
  readonly input: RelayedInput | undefined;
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
  readonly #inputs: HeldInputs;

  /**
   * @param item as announced at index `at` @param json its text @param inputs the inputs of the
   * stream's calls
   */
  constructor(at: number, item: JsonRecord, json: string, inputs: HeldInputs) {
    this.#inputs = inputs;
    this.#at = at;
    this.#item = item;
    this.#json = json;
  }

  /** Finds or creates the text of a kind and index. */
  text(type: string, kind: TextKind, index: number): OpenText {
    const known = this.#texts.find((each) => each.type === type && each.index === index);
    if (known !== undefined) return known;
    const deltaType = `${type}.delta`;
    const input = kind.member === "arguments" ? this.#inputs.begin() : undefined;
    const begun = { type, deltaType, kind, at: this.#at, index, input, raw: "", isComplete: false };
    this.#texts.push(begun);
    if (kind.index !== undefined) {
      this.#parts[kind.index][index] ??= openPart(JSON.stringify(kind.part ?? {}), {
        isAnnounced: false,
      });
    }
    return begun;
  }

  /**
   * Reads the arguments with which the vendor announces a call, if the real ones may follow them.
   */
  readPlaceholder(): void {
    const type = `response.${textAt(this.#item, "type")}_arguments`;
    const kind = textKinds.get(type);
    const begun = textAt(this.#item, "arguments");
    if (kind === undefined || begun === "" || !isPlaceholder(begun)) return;
    const open = this.text(type, kind, 0);
    if (open.input !== undefined) this.#inputs.read(open.input, begun);
    open.raw = JSON.stringify(begun).slice(1, -1);
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
    if (!this.#inputs.isActive) return;
    const whole = event.value(kind.member);
    if (typeof whole === "string") this.endInput(whole);
  }

  /** Its arguments are complete. @param whole all of them */
  endInput(whole: string): void {
    for (const { input } of this.#texts) if (input !== undefined) this.#inputs.end(input, whole);
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

  /** The part lists, if there are any. */
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
 * Tracks the whole output. A delta costs one copy of its text; completed items are kept as the
 * vendor sent them.
 */
export class RelayedOutput {
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
  readonly #inputs: HeldInputs;

  /**
   * @param publicModel replaces the vendor's model name; `undefined` keeps it
   * @param inputs the inputs of the stream's calls
   */
  constructor(publicModel: string | undefined, inputs: HeldInputs) {
    this.#inputs = inputs;
    this.#publicModel = publicModel;
  }

  /**
   * Reads a delta. @returns whether it repeats the whole arguments of a call: clients would join
   * both
   */
  delta(event: ObjectScan): boolean {
    // Nearly every delta continues the previous text; this is detected without creating a string of
    // its type.
    if (!isOf(this.#text, event)) this.#text = this.#textOf(event);
    const open = this.#text;
    if (open?.input === undefined) this.#inputs.endAll();
    if (open === undefined) return false;
    if (open.input !== undefined) {
      const piece = this.#inputs.read(open.input, String(event.value("delta")));
      if (piece.isRepeated) return true;
      if (piece.isRestart) open.raw = "";
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
      if (item !== undefined) {
        const begun = new RelayedItem(at, item, json, this.#inputs);
        this.#open.set(at, begun);
        begun.readPlaceholder();
      }
    } else if (type === "response.output_item.done") {
      const json = event.json("item");
      if (this.#inputs.isActive) {
        this.#open.get(at)?.endInput(textAt(parseRecord(json) ?? {}, "arguments"));
      }
      this.#open.delete(at);
      this.#done.set(at, json);
    } else {
      this.#open.get(at)?.event(type, event);
    }
  }

  /**
   * The index of an event's item. Without one, items are numbered in the order in which they begin.
   */
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
    // An event without an index requires a search for its item.
    event.count("output_index") === open.at &&
    (open.kind.index === undefined || event.count(open.kind.index) === open.index) &&
    event.is("type", open.deltaType)
  );
}
