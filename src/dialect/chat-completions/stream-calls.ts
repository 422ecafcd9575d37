/**
 * Assigns deltas to calls, which only this style needs: its vendors' indexes and IDs are
 * unreliable.
 */
import { ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { partDelta, partEnd, partStart } from "../generate-events.ts";
import type { JsonSource } from "../../wire/json/source.ts";
import { countAt, type JsonRecord, parseRecord, textAt } from "../../wire/json/value.ts";
import { newPart } from "../turns/parts.ts";
import { StreamedInput, startsObject } from "../streamed-input.ts";
import { readInput } from "./decode-content.ts";
import { membersOfCall, type OpaqueMembers, pushCarrier } from "./opaque-members.ts";
import { calledTool, generatedCallId } from "./wire.ts";

/** A call of the reply. */
interface OpenCall {
  /** The id that clients see. */
  id: string;
  /** The vendor's id; empty if it has sent none. */
  vendorId: string;
  name: string;
  /** Number of earlier calls in the reply. */
  readonly place: number;
  /** Undefined until the name is known: clients cannot use a call without one. */
  partIndex: number | undefined;
  readonly input: StreamedInput;
  /** Whether its opaque members came. */
  hasMembers: boolean;
}

/** Members of a delta about a call. */
interface CallDelta {
  readonly id: string;
  readonly name: string;
  readonly input: string;
  readonly index: number | undefined;
  readonly isCustom: boolean;
  /** Members that must return with the call. */
  readonly members: OpaqueMembers;
}

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

  /** Number of calls so far. */
  get count(): number {
    return this.#all.filter(({ partIndex }) => partIndex !== undefined).length;
  }

  /** Whether a call with input has no name, so that no client could run it. */
  get hasNameless(): boolean {
    return this.#all.some((call) => call.partIndex === undefined && !call.input.isPlaceholder);
  }

  /** Takes one of `tool_calls` of a delta. @param source the text of the chunk */
  read(wire: JsonRecord, source: JsonSource, events: GenerateEvent[]): void {
    const delta = readDelta(wire, source);
    const call = this.#find(delta) ?? this.#begin(delta);
    this.#identify(call, delta, events);
    call.input.add(delta.input);
    this.#send(call, events);
  }

  /** Reads all calls of a whole message and adds what was missing in the deltas. */
  whole(wires: readonly JsonRecord[], source: JsonSource, events: GenerateEvent[]): void {
    const told = new Set(this.#all);
    for (const [at, wire] of wires.entries()) {
      const delta = readDelta(wire, source);
      const call = findTold(told, at, delta) ?? this.#begin(delta);
      told.delete(call);
      this.#identify(call, delta, events);
      call.input.complete(delta.input);
      this.#send(call, events);
    }
  }

  /** Ends all calls; the style does not mark the end of each. */
  close(events: GenerateEvent[]): void {
    for (const call of this.#all) {
      if (call.partIndex === undefined) continue;
      call.input.complete();
      this.#send(call, events);
      events.push(partEnd(call.partIndex));
    }
  }

  /**
   * Finds the call of a delta. A known ID always identifies its call. A new ID, or another name,
   * begins a call. A delta with neither continues the call of its index, else the last one.
   */
  #find(delta: CallDelta): OpenCall | undefined {
    const { id, name, index } = delta;
    const known = this.#all.findLast(({ vendorId }) => id !== "" && vendorId === id);
    if (known !== undefined) {
      return name === "" || known.name === "" || known.name === name ? known : undefined;
    }
    const byIndex = index === undefined ? undefined : this.#byIndex.get(index);
    const last = this.#all.at(-1);
    if (name === "" && id === "") return byIndex ?? last;
    const candidate = index === undefined ? last : byIndex;
    return candidate !== undefined && goesOn(candidate, delta) ? candidate : undefined;
  }

  #begin({ id, index, isCustom }: CallDelta): OpenCall {
    const place = this.#all.length;
    const call: OpenCall = {
      id: this.#uniqueId(id, place),
      vendorId: id,
      name: "",
      place,
      partIndex: undefined,
      input: new StreamedInput(),
      hasMembers: false,
    };
    call.input.isText = isCustom;
    this.#all.push(call);
    this.#byIndex.set(index ?? place, call);
    return call;
  }

  /** The id of a call for clients: the vendor's, if no other call of the reply has it. */
  #uniqueId(id: string, place: number): string {
    if (id === "") return generatedCallId(this.replyId, place);
    return this.#all.some((each) => each.id === id) ? `${id}_${place}` : id;
  }

  /** Takes id and name, and begins the part of the call once its name is known. */
  #identify(
    call: OpenCall,
    { id, name, isCustom, members }: CallDelta,
    events: GenerateEvent[],
  ): void {
    call.name ||= name;
    const isNew = call.partIndex === undefined;
    if (isNew) call.input.isText ||= isCustom;
    if (call.vendorId === "" && id !== "") {
      call.vendorId = id;
      if (isNew) call.id = this.#uniqueId(id, call.place);
    }
    const isTold = call.hasMembers;
    call.hasMembers ||= members.size > 0;
    if (!isTold) pushCarrier(this.#nextPart, { callId: call.id, members }, events);
    if (!isNew || call.name === "") return;
    call.partIndex = this.#nextPart();
    const value = {
      $typeName: "uas.inference.v1.ToolCall" as const,
      id: call.id,
      name: call.name,
      type: call.input.isText ? ToolType.CUSTOM : ToolType.FUNCTION,
      input: "",
      namespace: "",
      itemId: "",
    };
    events.push(partStart(call.partIndex, newPart({ case: "toolCall", value })));
  }

  /** Sends what clients do not have. */
  #send({ partIndex, input }: OpenCall, events: GenerateEvent[]): void {
    if (partIndex === undefined) return;
    const value = input.take();
    if (value !== "") events.push(partDelta(partIndex, { case: "input", value }));
  }
}

/**
 * The call of deltas that a call of a whole message repeats: by its id, else by its place and name.
 */
function findTold(told: ReadonlySet<OpenCall>, at: number, { id, name }: CallDelta) {
  const calls = [...told];
  const sameId = calls.find(({ vendorId }) => id !== "" && vendorId === id);
  return sameId ?? calls.find((call) => call.place === at && ["", name].includes(call.name));
}

/** Whether a delta with a new ID or a name continues the call that its position suggests. */
function goesOn(call: OpenCall, { id, name, input }: CallDelta): boolean {
  const isOtherId = id !== "" && call.vendorId !== "";
  if (call.name === "") return !isOtherId;
  if (name !== "" && name !== call.name) return false;
  const hasInput = !call.input.isPlaceholder;
  // Some vendors give each delta another id: what is no beginning belongs to an input that is under
  // way.
  if (isOtherId) return hasInput && !call.input.isWhole && input !== "" && !startsObject(input);
  // Some repeat the name in every delta, or the whole call at the end.
  const isOther = startsObject(input) && !isSameJson(input, call.input.text);
  return name === "" || !hasInput || !call.input.isWhole || !isOther;
}

function isSameJson(one: string, other: string): boolean {
  const a = parseRecord(one);
  const b = parseRecord(other);
  return a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b);
}

function readDelta(wire: JsonRecord, source: JsonSource): CallDelta {
  const { called, isCustom } = calledTool(wire);
  return {
    id: textAt(wire, "id"),
    name: textAt(called, "name"),
    input: readInput(called, isCustom ? "input" : "arguments", source),
    index: countAt(wire, "index"),
    isCustom,
    members: membersOfCall(wire, source),
  };
}
