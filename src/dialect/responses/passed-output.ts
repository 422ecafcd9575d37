/** What a relayed stream has told and what it has open: its last event repeats all of it. */
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { parseRecord } from "../json.ts";
import type { ObjectScan } from "../json/object-scan.ts";
import { EventWriter, membersOf } from "./event-writer.ts";
import { type OpenText, PassedItem, textKinds } from "./passed-item.ts";
import { usageJson } from "./usage.ts";

/**
 * Takes note of the output of a stream, so that it can be ended before its vendor does. A delta costs the
 * copy of its text; what is complete is kept as the vendor told it.
 */
export class PassedOutput {
  readonly #publicModel: string | undefined;
  /** The response as it was told first, as JSON. */
  #response = "";
  /** The items that are complete, as JSON, by their place. */
  readonly #done = new Map<number, string>();
  readonly #open = new Map<number, PassedItem>();
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
      if (item !== undefined) this.#open.set(at, new PassedItem(at, item));
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
      const { told, json } = item.stop(events);
      out += told;
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
function isOf(text: OpenText | undefined, event: ObjectScan): boolean {
  return (
    text !== undefined &&
    event.count("output_index") === text.at &&
    (text.kind.index === undefined || event.count(text.kind.index) === text.index) &&
    event.is("type", text.deltaType)
  );
}
