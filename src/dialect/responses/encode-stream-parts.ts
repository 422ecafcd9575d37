/** Messages in a streamed response: texts and refusals that follow each other are parts of one. */
import type {
  Citation,
  Reasoning,
  ReasoningSeal,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import {
  type ItemStatus,
  messageItem,
  OutputIds,
  reasoningItem,
  refusalContent,
  textContent,
} from "./encode-reply.ts";
import {
  type DeltaWriter,
  itemAdded,
  itemDone,
  type ItemPlace,
  membersOf,
  type PartWriter,
} from "./event-writer.ts";

/** A message while it is written. It stays open for further parts until something else follows. */
export class MessageWriter {
  readonly phase: string;
  readonly #place: ItemPlace;
  readonly #names: OutputIds;
  readonly #content: JsonRecord[] = [];
  #openParts = 0;
  #isDone = false;

  constructor(place: ItemPlace, names: OutputIds, phase: string) {
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

  /** Adds a part. @param onEnd called once it is complete */
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
  readonly #names: OutputIds;
  readonly #deltas: DeltaWriter;
  readonly #citations: Citation[] = [];
  #text = "";

  constructor(place: ContentPlace, names: OutputIds) {
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
    // A citation may cover the whole text, so it is written when the text is complete.
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

/** A text that is under way. */
interface OpenText {
  readonly deltas: DeltaWriter;
  /** Its index among parts of its kind. */
  readonly members: JsonRecord;
  /** Whether it is a summary to the vendor too; else text that is shown as one. */
  readonly isSummary: boolean;
  text: string;
}

/**
 * Writes reasoning. The text is shown as reasoning if a vendor of this style generated it,
 * according to its ID; otherwise as a summary, because most clients show nothing else.
 */
export class ReasoningWriter implements PartWriter {
  readonly #place: ItemPlace;
  readonly #begun: Reasoning;
  readonly #showsText: boolean;
  /** Summaries from the vendor. */
  readonly #summaries: string[] = [];
  #text = "";
  #seal: ReasoningSeal | undefined;
  /** Summaries that the client sees. */
  readonly #shown: string[] = [];
  #openSummary: OpenText | undefined;
  #openText: OpenText | undefined;

  constructor(place: ItemPlace, reasoning: Reasoning) {
    this.#place = place;
    this.#begun = reasoning;
    this.#seal = reasoning.seal;
    this.#showsText = reasoning.itemId !== "";
  }

  begin(): string {
    const { text, summaries } = this.#begun;
    let out = itemAdded(this.#place, { id: this.#place.id, type: "reasoning", summary: [] });
    for (const summary of summaries) out += this.#startSummary(true) + this.#summarize(summary);
    if (text !== "") out += this.#write(text);
    return out;
  }

  delta(delta: PartDelta["delta"]): string {
    switch (delta.case) {
      case "text":
        return delta.value === "" ? "" : this.#write(delta.value);
      case "summaryStart":
        return this.#startSummary(true);
      case "summary":
        return this.#summarize(delta.value);
      case "seal":
        this.#seal = delta.value;
        return "";
      case "input":
      case "citation":
      case undefined:
      default:
        return "";
    }
  }

  end(): string {
    const out = this.#endSummary() + this.#endText();
    const reasoning: Reasoning = {
      ...this.#begun,
      text: this.#text,
      summaries: this.#summaries,
      ...(this.#seal && { seal: this.#seal }),
    };
    const shown = { text: this.#showsText ? this.#text : "", summaries: this.#shown };
    return out + itemDone(this.#place, reasoningItem(this.#place.id, reasoning, shown));
  }

  #write(text: string): string {
    this.#text += text;
    if (this.#showsText) return this.#showText(text);
    const isOpen = this.#openSummary?.isSummary === false;
    return (isOpen ? "" : this.#startSummary(false)) + this.#show(text);
  }

  #summarize(text: string): string {
    const isOpen = this.#openSummary?.isSummary === true;
    const begun = isOpen ? "" : this.#startSummary(true);
    this.#summaries[this.#summaries.length - 1] += text;
    return begun + this.#show(text);
  }

  #startSummary(isSummary: boolean): string {
    const ended = this.#endSummary();
    if (isSummary) this.#summaries.push("");
    const { events } = this.#place;
    const members = this.#members({ summary_index: this.#shown.length });
    const deltas = events.deltas("response.reasoning_summary_text.delta", members);
    this.#openSummary = { deltas, members, isSummary, text: "" };
    this.#shown.push("");
    const part = { type: "summary_text", text: "" };
    const type = "response.reasoning_summary_part.added";
    return ended + events.event(type, membersOf({ ...members, part }));
  }

  #show(text: string): string {
    const open = this.#openSummary;
    if (open === undefined || text === "") return "";
    open.text += text;
    return open.deltas.write(text);
  }

  #endSummary(): string {
    const open = this.#openSummary;
    if (open === undefined) return "";
    this.#openSummary = undefined;
    const { members, text } = open;
    this.#shown[this.#shown.length - 1] = text;
    const part = { type: "summary_text", text };
    const { events } = this.#place;
    return (
      events.event("response.reasoning_summary_text.done", membersOf({ ...members, text })) +
      events.event("response.reasoning_summary_part.done", membersOf({ ...members, part }))
    );
  }

  #showText(text: string): string {
    const { events } = this.#place;
    const members = this.#members({ content_index: 0 });
    let begun = "";
    if (this.#openText === undefined) {
      const part = { type: "reasoning_text", text: "" };
      begun = events.event("response.content_part.added", membersOf({ ...members, part }));
      const deltas = events.deltas("response.reasoning_text.delta", members);
      this.#openText = { deltas, members, isSummary: false, text: "" };
    }
    return begun + this.#openText.deltas.write(text);
  }

  #endText(): string {
    if (this.#openText === undefined) return "";
    const { members } = this.#openText;
    const text = this.#text;
    const part = { type: "reasoning_text", text };
    const { events } = this.#place;
    return (
      events.event("response.reasoning_text.done", membersOf({ ...members, text })) +
      events.event("response.content_part.done", membersOf({ ...members, part }))
    );
  }

  #members(index: JsonRecord): JsonRecord {
    return { item_id: this.#place.id, output_index: this.#place.at, ...index };
  }
}
