/** An item of a relayed stream that is under way. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ObjectScan } from "../json/object-scan.ts";
import { parseRecord, type JsonRecord } from "../json/value.ts";
import { membersOf, EventWriter } from "./event-writer.ts";
import { usageJson } from "./usage.ts";

/** A text that comes in deltas. */
interface TextKind {
  /** The member that counts the parts of an item; `undefined`: the text is the item's own. */
  readonly index?: "content_index" | "summary_index";
  /** The member of the part, or of the item, that is the text. */
  readonly member: "text" | "refusal" | "arguments" | "input" | "code";
  /** What a part begins as that its vendor did not announce. */
  readonly part?: JsonRecord;
}

const content = "content_index";
const text = { index: content, member: "text" } as const;

/** By what stands before `.delta` in the types of their events. */
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

/** A text under way, or told in full. */
interface OpenText {
  /** What stands before `.delta` in the types of its events. */
  readonly type: string;
  readonly deltaType: string;
  readonly kind: TextKind;
  /** The place of its item in the output. */
  readonly at: number;
  readonly index: number;
  /** What came so far, as it stands in JSON, in Latin-1. */
  raw: string;
  /** Whether its vendor has told it in full. */
  isComplete: boolean;
}

/** A part of an item: one of its content, or of its summary. */
interface OpenPart {
  json: JsonRecord;
  /** Whether its vendor announced it, and whether it has ended it. */
  readonly isAnnounced: boolean;
  isDone: boolean;
}

/** The events of the parts of a list. */
const partEvents = {
  content_index: "response.content_part",
  summary_index: "response.reasoning_summary_part",
} as const;

/** Takes note of what passes of an item. */
class RelayedItem {
  readonly #at: number;
  readonly #item: JsonRecord;
  readonly #parts = { content_index: [] as OpenPart[], summary_index: [] as OpenPart[] };
  readonly #texts: OpenText[] = [];

  /** @param item as it was announced at the place `at` */
  constructor(at: number, item: JsonRecord) {
    this.#at = at;
    this.#item = item;
  }

  /** The text of that kind and place: a new one where there is none. */
  text(type: string, kind: TextKind, index: number): OpenText {
    const known = this.#texts.find((each) => each.type === type && each.index === index);
    if (known !== undefined) return known;
    const deltaType = `${type}.delta`;
    const begun = { type, deltaType, kind, at: this.#at, index, raw: "", isComplete: false };
    this.#texts.push(begun);
    if (kind.index !== undefined) {
      this.#parts[kind.index][index] ??= part(kind.part ?? {}, { isAnnounced: false });
    }
    return begun;
  }

  /** An event of the item passes that is no delta. */
  event(type: string, event: ObjectScan): void {
    for (const list of ["content_index", "summary_index"] as const) {
      const index = event.count(list);
      if (index < 0 || !type.startsWith(partEvents[list])) continue;
      const json = parseRecord(event.json("part")) ?? {};
      const isDone = type.endsWith(".done");
      const isAnnounced = !isDone || this.#parts[list][index]?.isAnnounced === true;
      this.#parts[list][index] = { ...part(json, { isAnnounced }), isDone };
      return;
    }
    const kind = textKinds.get(type.replace(/\.done$/, ""));
    if (kind === undefined) return;
    const index = kind.index === undefined ? 0 : event.count(kind.index);
    const text = this.text(type.slice(0, -".done".length), kind, index);
    // As a Latin-1 text, like those of deltas.
    text.raw = event.string(kind.member);
    text.isComplete = true;
  }

  /** Ends it: the events that tell so, and the item. */
  stop(events: EventWriter): { written: string; json: string } {
    const own: Record<string, string> = {};
    let written = "";
    for (const open of this.#texts) {
      const value = JSON.parse(`"${Buffer.from(open.raw, "latin1").toString("utf8")}"`) as string;
      const { index, member } = open.kind;
      if (index === undefined) own[member] = value;
      else this.#tell(open, index, value);
      if (!open.isComplete)
        written += events.event(`${open.type}.done`, this.#members(open, value));
      if (index !== undefined) written += this.#endPart(open, index, events);
    }
    const json = JSON.stringify({ ...this.#item, ...own, ...this.#lists(), ...this.#status() });
    return {
      json,
      written:
        written +
        events.event("response.output_item.done", `"output_index":${this.#at},"item":${json}`),
    };
  }

  #tell({ kind, index }: OpenText, list: keyof typeof partEvents, value: string): void {
    const open = this.#parts[list][index];
    if (open !== undefined && !open.isDone) open.json = { ...open.json, [kind.member]: value };
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
    return events.event(`${partEvents[list]}.done`, membersOf({ ...place, part: open.json }));
  }

  /** The parts in their lists, where it has any. */
  #lists(): JsonRecord {
    const { content_index: contents, summary_index: summaries } = this.#parts;
    const json = (parts: readonly OpenPart[]): JsonRecord[] =>
      Object.values(parts).map((p) => p.json);
    return {
      ...(contents.length > 0 && { content: json(contents) }),
      ...(summaries.length > 0 && { summary: json(summaries) }),
    };
  }

  #status(): JsonRecord {
    return "status" in this.#item ? { status: "incomplete" } : {};
  }
}

function part(json: JsonRecord, { isAnnounced }: { readonly isAnnounced: boolean }): OpenPart {
  return { json, isAnnounced, isDone: false };
}

/**
 * Takes note of the output of a stream, so that it can be ended before its vendor does. A delta costs the
 * copy of its text; what is complete is kept as the vendor told it.
 */
export class RelayedOutput {
  readonly #publicModel: string | undefined;
  /** The response as it was told first, as JSON. */
  #response = "";
  /** The items that are complete, as JSON, by their place. */
  readonly #done = new Map<number, string>();
  readonly #open = new Map<number, RelayedItem>();
  /** The text that deltas belong to, as long as they do. */
  #text: OpenText | undefined;

  /** @param publicModel the name in place of the vendor's; `undefined`: the vendor's stays */
  constructor(publicModel: string | undefined) {
    this.#publicModel = publicModel;
  }

  /** A delta passes. */
  delta(event: ObjectScan): void {
    // Nearly every delta goes on with the text of the one before: that is told without making a text of its type.
    if (!isOf(this.#text, event)) this.#text = this.#textOf(event);
    if (this.#text !== undefined) this.#text.raw += event.string("delta");
  }

  #textOf(event: ObjectScan): OpenText | undefined {
    const type = event.string("type").slice(0, -".delta".length);
    const kind = textKinds.get(type);
    if (kind === undefined) return undefined;
    const index = kind.index === undefined ? 0 : event.count(kind.index);
    return this.#open.get(event.count("output_index"))?.text(type, kind, index);
  }

  /** Another event passes. */
  event(type: string, event: ObjectScan): void {
    this.#text = undefined;
    const at = event.count("output_index");
    if (at < 0) {
      this.#response ||= event.json("response");
    } else if (type === "response.output_item.added") {
      const item = parseRecord(event.json("item"));
      if (item !== undefined) this.#open.set(at, new RelayedItem(at, item));
    } else if (type === "response.output_item.done") {
      this.#open.delete(at);
      this.#done.set(at, event.json("item"));
    } else {
      this.#open.get(at)?.event(type, event);
    }
  }

  /** The events that end what is open, and the last one. @param sequence the number of the first */
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
    const { output: _none, ...told } = parseRecord(this.#response) ?? {};
    const ended = {
      ...told,
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      ...(this.#publicModel !== undefined && { model: this.#publicModel }),
      usage: usageJson(usage),
    };
    return `{${membersOf(ended)},"output":[${output.join(",")}]}`;
  }
}

/** Whether a delta belongs to a text. */
function isOf(open: OpenText | undefined, event: ObjectScan): boolean {
  return (
    open !== undefined &&
    event.count("output_index") === open.at &&
    (open.kind.index === undefined || event.count(open.kind.index) === open.index) &&
    event.is("type", open.deltaType)
  );
}
