/**
 * Items with IDs and indexes exist only in this style.
 *
 * Distinguishes the items of a stream whose vendors omit either, reuse an index or ID for two
 * items, or change an item's ID from event to event. An event belongs to the item with its ID, else
 * with its call ID, else with its index, else to the open item.
 */
import { countAt, type JsonRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** Identity of an item. */
interface Place {
  readonly key: number;
  readonly type: string;
  readonly callId: string;
  readonly index: number | undefined;
  isDone: boolean;
}

/** Finds the items of events by a key: their number in the order in which they began. */
export class ItemPlaces {
  readonly #all: Place[] = [];
  readonly #byId = new Map<string, Place>();
  readonly #byCallId = new Map<string, Place>();
  readonly #byIndex = new Map<number, Place>();
  /** IDs that several items share, so they identify none. */
  readonly #shared = new Set<string>();

  /** Number of items so far: their keys are below it. */
  get size(): number {
    return this.#all.length;
  }

  /** The item that an event announces; undefined if it has begun already. */
  begun(event: JsonRecord): number | undefined {
    const item = recordAt(event, "item") ?? {};
    const known = this.#byIdentity(event, item);
    if (known === undefined) return this.#begin(event, item).key;
    return isAnother(known, event, item) ? this.#beginAnother(event, item).key : undefined;
  }

  /** The item of an event about a part of it. */
  of(event: JsonRecord): number {
    const item = recordAt(event, "item") ?? {};
    return (this.#find(event, item) ?? this.#begin(event, item)).key;
  }

  /** The item that an event says is complete; undefined if that was said before. */
  ended(event: JsonRecord): number | undefined {
    const item = recordAt(event, "item") ?? {};
    const found = this.#find(event, item);
    if (found === undefined) return end(this.#begin(event, item));
    return end(isAnother(found, event, item) ? this.#beginAnother(event, item) : found);
  }

  /**
   * The item at a position of the final output; undefined if it was complete before.
   *
   * @param at its position among the items of its type
   */
  inOutput(item: JsonRecord, at: number): number | undefined {
    const type = textAt(item, "type");
    const alike = this.#all.filter((each) => each.type === type);
    const found = this.#byIdentity({}, item) ?? alike[at];
    return end(found ?? this.#begin({}, item));
  }

  #find(event: JsonRecord, item: JsonRecord): Place | undefined {
    const known = this.#byIdentity(event, item);
    if (known !== undefined) return known;
    const index = countAt(event, "output_index");
    if (index !== undefined) return this.#byIndex.get(index);
    return this.#all.findLast(({ isDone }) => !isDone);
  }

  #byIdentity(event: JsonRecord, item: JsonRecord): Place | undefined {
    const id = textAt(event, "item_id") || textAt(item, "id");
    const callId = textAt(item, "call_id") || textAt(event, "call_id");
    const byId = this.#shared.has(id) ? undefined : this.#byId.get(id);
    return byId ?? this.#byCallId.get(callId);
  }

  /** Begins an item that has the id of another one. */
  #beginAnother(event: JsonRecord, item: JsonRecord): Place {
    const id = textAt(item, "id");
    if (this.#byId.has(id)) this.#shared.add(id);
    return this.#begin(event, item);
  }

  #begin(event: JsonRecord, item: JsonRecord): Place {
    const type = textAt(item, "type") || typeOfPart(textAt(event, "type"));
    const callId = textAt(item, "call_id");
    const index = countAt(event, "output_index");
    const place = { key: this.#all.length, type, callId, index, isDone: false };
    this.#all.push(place);
    const id = textAt(event, "item_id") || textAt(item, "id");
    if (id !== "") this.#byId.set(id, place);
    if (callId !== "") this.#byCallId.set(callId, place);
    if (index !== undefined) this.#byIndex.set(index, place);
    return place;
  }
}

/** Whether an item is another one than the item that its id or its place suggests. */
function isAnother(known: Place, event: JsonRecord, item: JsonRecord): boolean {
  const index = countAt(event, "output_index");
  const callId = textAt(item, "call_id");
  const type = textAt(item, "type");
  return (
    (known.type !== "" && type !== "" && known.type !== type) ||
    (known.callId !== "" && callId !== "" && known.callId !== callId) ||
    (known.index !== undefined && index !== undefined && known.index !== index)
  );
}

/** The type of an item that was not announced, by an event about a part of it. */
function typeOfPart(event: string): string {
  if (/^response\.(?:output_text|refusal|content_part)\./.test(event)) return "message";
  if (/^response\.reasoning_/.test(event)) return "reasoning";
  return /^response\.(\w+_call)_\w+\./.exec(event)?.[1] ?? "";
}

function end(place: Place): number | undefined {
  if (place.isDone) return undefined;
  place.isDone = true;
  return place.key;
}
