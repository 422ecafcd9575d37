/** Only this style's streams have to be told which delta belongs to which call: their indexes and ids cannot be relied on. */
import { ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { partDelta, partEnd, partStart } from "../generate-events.ts";
import type { JsonSource } from "../json/source.ts";
import { countAt, type JsonRecord, recordAt, textAt } from "../json/value.ts";
import { newPart } from "../parts.ts";
import { readInput } from "./decode-content.ts";
import { opaquePart, opaqueText } from "./opaque-members.ts";
import { generatedCallId } from "./wire.ts";

/** A call of the reply. */
interface OpenCall {
  /** The id that clients see. */
  id: string;
  /** The vendor's id; empty: it has sent none. */
  vendorId: string;
  name: string;
  readonly isCustom: boolean;
  /** Undefined until the name is known: clients cannot use a call without one. */
  partIndex: number | undefined;
  /** All of its input so far. */
  input: string;
  /** Whether the input is a whole object. */
  end: ObjectEnd;
  /** How much of the input clients have, in characters. */
  sent: number;
  /** Whether the input came in full, so that what follows repeats it. */
  isComplete: boolean;
}

/** What a delta says of a call. */
interface CallDelta {
  readonly id: string;
  readonly name: string;
  readonly input: string;
  readonly index: number | undefined;
  readonly isCustom: boolean;
  readonly opaque: string;
}

/** Inputs that vendors send before the real one, and the beginnings of these. */
const placeholders: ReadonlySet<string> = new Set(["", "{", "{}", "n", "nu", "nul", "null"]);

/** Reads the calls of a stream. */
export class CallReader {
  /** The reply's id; ids of calls are derived from it if the vendor provides none. */
  replyId = "";
  readonly #nextPart: () => number;
  readonly #all: OpenCall[] = [];
  readonly #byIndex = new Map<number, OpenCall>();

  /** @param nextPart gives the number of the next part */
  constructor(nextPart: () => number) {
    this.#nextPart = nextPart;
  }

  /** How many calls there were. */
  get count(): number {
    return this.#all.filter(({ partIndex }) => partIndex !== undefined).length;
  }

  /** Takes one of `tool_calls` of a delta. @param source the text of the chunk */
  read(wire: JsonRecord, source: JsonSource, events: GenerateEvent[]): void {
    const delta = readDelta(wire, source);
    const call = this.#find(delta) ?? this.#begin(delta);
    this.#identify(call, delta, events);
    this.#add(call, delta.input, events);
  }

  /** Takes one of `tool_calls` of a whole message: adds what no delta has told. @param at its position */
  whole(wire: JsonRecord, at: number, source: JsonSource, events: GenerateEvent[]): void {
    const delta = readDelta(wire, source);
    const known = this.#all.find(({ vendorId }) => delta.id !== "" && vendorId === delta.id);
    const alike = this.#all[at];
    const isAlike = alike?.name === delta.name || alike?.name === "";
    const call = known ?? (isAlike ? alike : undefined) ?? this.#begin(delta);
    this.#identify(call, delta, events);
    const isPlaceholder = placeholders.has(call.input.trim());
    if (isPlaceholder) call.input = delta.input;
    else if (delta.input.startsWith(call.input)) call.input = delta.input;
    call.isComplete = true;
    this.#send(call, events);
  }

  /** Ends all calls; the style does not mark the end of each. */
  close(events: GenerateEvent[]): void {
    for (const call of this.#all) {
      if (call.partIndex === undefined) continue;
      if (!call.isCustom && call.input.trim() === "null") call.input = "{}";
      call.isComplete = true;
      this.#send(call, events);
      events.push(partEnd(call.partIndex));
    }
  }

  /**
   * A known id always belongs to its call. A new id with a name, or another name, begins a call. A delta with neither goes
   * on with the call of its index, else with the last one.
   */
  #find({ id, name, input, index }: CallDelta): OpenCall | undefined {
    const known = this.#all.findLast(({ vendorId }) => id !== "" && vendorId === id);
    if (known !== undefined) {
      return name === "" || known.name === "" || known.name === name ? known : undefined;
    }
    const byIndex = index === undefined ? undefined : this.#byIndex.get(index);
    const last = this.#all.at(-1);
    if (name === "") return byIndex ?? last;
    const candidate = index === undefined ? last : byIndex;
    if (candidate === undefined) return undefined;
    if (candidate.name === "")
      return id === "" || candidate.vendorId === "" ? candidate : undefined;
    // Some vendors repeat the name in every delta, and send the id later than the name.
    const isRepeated = candidate.name === name && (id === "" || candidate.vendorId === "");
    const isNext = candidate.end.isWhole && input.trimStart().startsWith("{");
    return isRepeated && !isNext ? candidate : undefined;
  }

  #begin({ id, index, isCustom }: CallDelta): OpenCall {
    const number = this.#all.length;
    const isTaken = this.#all.some((each) => each.id === id);
    const call: OpenCall = {
      id: id === "" ? generatedCallId(this.replyId, number) : isTaken ? `${id}_${number}` : id,
      vendorId: id,
      name: "",
      isCustom,
      partIndex: undefined,
      input: "",
      end: new ObjectEnd(),
      sent: 0,
      isComplete: false,
    };
    this.#all.push(call);
    this.#byIndex.set(index ?? number, call);
    return call;
  }

  /** Takes id and name, and begins the part of the call once its name is known. */
  #identify(call: OpenCall, { id, name, opaque }: CallDelta, events: GenerateEvent[]): void {
    call.name ||= name;
    const isNew = call.partIndex === undefined;
    if (call.vendorId === "" && id !== "") {
      call.vendorId = id;
      if (isNew) call.id = id;
    }
    if (opaque !== "") opaquePart(this.#nextPart(), call.id, opaque, events);
    if (!isNew || call.name === "") return;
    call.partIndex = this.#nextPart();
    const value = {
      $typeName: "uas.inference.v1.ToolCall" as const,
      id: call.id,
      name: call.name,
      type: call.isCustom ? ToolType.CUSTOM : ToolType.FUNCTION,
      input: "",
      namespace: "",
      itemId: "",
    };
    events.push(partStart(call.partIndex, newPart({ case: "toolCall", value })));
  }

  #add(call: OpenCall, input: string, events: GenerateEvent[]): void {
    if (input === "") return this.#send(call, events);
    if (call.isCustom) call.input += input;
    else if (placeholders.has(call.input.trim()) && input.trimStart().startsWith("{")) {
      // The real input follows an empty one. One that is cut between `{` and `}` is joined.
      const isJoined = call.input.trim() === "{";
      call.input = isJoined ? call.input + input : input;
      if (!isJoined) call.end = new ObjectEnd();
    } else if (call.end.isWhole && input.trimStart().startsWith("{")) {
      // The input comes again, in full.
      return;
    } else call.input += input;
    call.end.push(input);
    this.#send(call, events);
  }

  /** Sends what clients do not have. A beginning that may be a placeholder waits. */
  #send(call: OpenCall, events: GenerateEvent[]): void {
    const { partIndex, input, isCustom, isComplete } = call;
    if (partIndex === undefined) return;
    if (!isCustom && !isComplete && placeholders.has(input.trim())) return;
    const rest = input.slice(call.sent);
    if (rest === "") return;
    call.sent = input.length;
    events.push(partDelta(partIndex, { case: "input", value: rest }));
  }
}

/** Follows a JSON object through its pieces, to know where it ends. */
class ObjectEnd {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  /** Whether an object began and ended. */
  isWhole = false;

  push(piece: string): void {
    for (const char of piece) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInText) {
        if (char === "\\") this.#isEscaped = true;
        else if (char === '"') this.#isInText = false;
      } else if (char === '"') this.#isInText = true;
      else if (char === "{" || char === "[") this.#depth++;
      else if ((char === "}" || char === "]") && --this.#depth === 0) this.isWhole = true;
    }
  }
}

function readDelta(wire: JsonRecord, source: JsonSource): CallDelta {
  const custom = recordAt(wire, "custom");
  const called = custom ?? recordAt(wire, "function") ?? {};
  return {
    id: textAt(wire, "id"),
    name: textAt(called, "name"),
    input: readInput(called, custom ? "input" : "arguments", source),
    index: countAt(wire, "index"),
    isCustom: custom !== undefined,
    opaque: opaqueText(wire, source),
  };
}
