/** Messages in a streamed response: texts and refusals that follow each other are parts of one. */
import type { Citation } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { JsonRecord } from "../json.ts";
import { type DeltaWriter, membersOf } from "./event-writer.ts";
import {
  type ItemStatus,
  messageItem,
  type OutputNames,
  refusalContent,
  textContent,
} from "./output-json.ts";
import { itemAdded, itemDone, type ItemPlace, type PartWriter } from "./part-writer.ts";

/** A message while it is written. It stays open for further parts until something else follows. */
export class MessageWriter {
  readonly phase: string;
  readonly #place: ItemPlace;
  readonly #names: OutputNames;
  readonly #content: JsonRecord[] = [];
  #openParts = 0;
  #isDone = false;

  constructor(place: ItemPlace, names: OutputNames, phase: string) {
    this.#place = place;
    this.#names = names;
    this.phase = phase;
  }

  /** Whether no part of it is under way. */
  get isIdle(): boolean {
    return this.#openParts === 0;
  }

  begin(): string {
    const { id } = this.#place;
    const { phase } = this;
    return itemAdded(this.#place, messageItem({ id, status: "in_progress", content: [], phase }));
  }

  /** Adds a part. @param onEnd told once it is complete */
  part(type: "text" | "refusal", onEnd: () => string): PartWriter {
    const { events, id, at } = this.#place;
    const index = this.#content.length;
    const empty = type === "text" ? textContent("", [], this.#names) : refusalContent("");
    this.#content.push(empty);
    this.#openParts++;
    const members = { item_id: id, output_index: at, content_index: index };
    const end = (content: JsonRecord): string => {
      this.#content[index] = content;
      this.#openParts--;
      return onEnd();
    };
    const place = { events, members, empty, end };
    return type === "text" ? new TextWriter(place, this.#names) : new RefusalWriter(place);
  }

  /** Nothing follows in it. */
  done(status: ItemStatus): string {
    if (this.#isDone) return "";
    this.#isDone = true;
    const { id } = this.#place;
    const { phase } = this;
    return itemDone(this.#place, messageItem({ id, status, content: this.#content, phase }));
  }
}

interface ContentPlace {
  readonly events: ItemPlace["events"];
  readonly members: JsonRecord;
  /** The part as it begins. */
  readonly empty: JsonRecord;
  /** Takes the complete part; returns what follows it. */
  readonly end: (content: JsonRecord) => string;
}

function contentAdded({ events, members, empty }: ContentPlace): string {
  return events.event("response.content_part.added", membersOf({ ...members, part: empty }));
}

function contentDone({ events, members, end }: ContentPlace, part: JsonRecord): string {
  const done = events.event("response.content_part.done", membersOf({ ...members, part }));
  return done + end(part);
}

class TextWriter implements PartWriter {
  readonly #place: ContentPlace;
  readonly #names: OutputNames;
  readonly #deltas: DeltaWriter;
  readonly #citations: Citation[] = [];
  #text = "";

  constructor(place: ContentPlace, names: OutputNames) {
    this.#place = place;
    this.#names = names;
    const type = "response.output_text.delta";
    this.#deltas = place.events.deltas(type, place.members, ',"logprobs":[]');
  }

  begin(): string {
    return contentAdded(this.#place);
  }

  delta(delta: PartDelta["delta"]): string {
    if (delta.case === "text" && delta.value !== "") {
      this.#text += delta.value;
      return this.#deltas.write(delta.value);
    }
    // What a citation is about may be the whole text: it is told when that is there.
    if (delta.case === "citation") this.#citations.push(delta.value);
    return "";
  }

  end(): string {
    const { events, members } = this.#place;
    const text = this.#text;
    const part = textContent(text, this.#citations, this.#names);
    const annotations = part["annotations"] as readonly unknown[];
    const cited = annotations.map((annotation, i) =>
      events.event(
        "response.output_text.annotation.added",
        membersOf({ ...members, annotation_index: i, annotation }),
      ),
    );
    const done = events.event(
      "response.output_text.done",
      membersOf({ ...members, text, logprobs: [] }),
    );
    return cited.join("") + done + contentDone(this.#place, part);
  }
}

class RefusalWriter implements PartWriter {
  readonly #place: ContentPlace;
  readonly #deltas: DeltaWriter;
  #text = "";

  constructor(place: ContentPlace) {
    this.#place = place;
    this.#deltas = place.events.deltas("response.refusal.delta", place.members);
  }

  begin(): string {
    return contentAdded(this.#place);
  }

  delta(delta: PartDelta["delta"]): string {
    if (delta.case !== "text" || delta.value === "") return "";
    this.#text += delta.value;
    return this.#deltas.write(delta.value);
  }

  end(): string {
    const { events, members } = this.#place;
    const refusal = this.#text;
    const done = events.event("response.refusal.done", membersOf({ ...members, refusal }));
    return done + contentDone(this.#place, refusalContent(refusal));
  }
}
