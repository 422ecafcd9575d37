/**
 * Reasoning for clients whose style has no place for it (chat completions): put back into the turns whose
 * tool calls it led to, before a vendor sees them (R-TXT-3).
 */
import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Part, PartSchema, Role } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReasoningCarry } from "./reasoning-carry.ts";

/** Puts kept reasoning back. `undefined`: the conversation has no tool calls, so there can be none. */
export function recallReasoning(
  carry: ReasoningCarry,
  accountId: string,
  generation: Generation,
): Promise<void> | undefined {
  const turns = (generation.conversation?.turns ?? []).filter(
    (turn) => turn.role === Role.ASSISTANT && callIds(turn.parts).length > 0,
  );
  if (turns.length === 0) return undefined;
  return (async () => {
    const found = await carry.find(
      accountId,
      turns.flatMap((turn) => callIds(turn.parts)),
    );
    for (const turn of turns) {
      const json = callIds(turn.parts).flatMap((id) => found.get(id) ?? [])[0];
      if (json === undefined) continue;
      turn.parts = restored(readParts(json), turn.parts);
    }
  })();
}

/**
 * The parts of a turn in the order that the vendor gave them in: it wants each reasoning back before what it
 * led to.
 *
 * @param kept the reasoning, and marks for the text and the calls around it
 */
function restored(kept: readonly Part[], said: readonly Part[]): Part[] {
  // What the client sends back itself has lost its seal.
  const rest = new Set(said.filter(({ kind }) => kind.case !== "reasoning"));
  const take = (isNext: (part: Part) => boolean): Part[] => {
    const taken = [...rest].filter(isNext);
    for (const part of taken) rest.delete(part);
    return taken;
  };
  const isText = ({ kind }: Part): boolean => kind.case !== "toolCall";
  const parts = kept.flatMap((part) => {
    const mark = part.kind;
    if (mark.case === "reasoning") return [part];
    // A client may have said more than the vendor: text never stands behind calls.
    const texts = take(isText);
    if (mark.case !== "toolCall") return texts;
    const { id } = mark.value;
    return [...texts, ...take(({ kind }) => kind.case === "toolCall" && kind.value.id === id)];
  });
  return [...parts, ...take(isText), ...rest];
}

function callIds(parts: readonly Part[]): string[] {
  return parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value.id] : []));
}

function readParts(json: string): Part[] {
  return (JSON.parse(json) as JsonValue[]).map((part) => fromJson(PartSchema, part));
}

/** Collects the reasoning and the tool calls of one reply. */
export class ReasoningCollector {
  /** By number: reasoning, and marks for the text and the calls around it. */
  readonly #parts = new Map<number, Part>();
  readonly #callIds: string[] = [];

  /** Takes a whole reply's parts. */
  addParts(parts: readonly Part[]): void {
    for (const [index, part] of parts.entries()) this.#add(index, part);
  }

  /** Takes the events of a streamed one. */
  addEvents(events: readonly GenerateEvent[]): void {
    for (const { kind } of events) {
      if (kind.case === "partStart" && kind.value.part) {
        this.#add(kind.value.index, kind.value.part);
      } else if (kind.case === "partDelta" && this.#parts.size > 0) {
        this.#addDelta(kind.value.index, kind.value.delta);
      }
    }
  }

  /** What is to be kept: sealed reasoning that led to calls. `undefined`: nothing. */
  kept(): { readonly callIds: readonly string[]; readonly json: string } | undefined {
    const parts = [...this.#parts.values()].filter(
      ({ kind }) => kind.case !== "reasoning" || kind.value.seal !== undefined,
    );
    const isSealed = parts.some(({ kind }) => kind.case === "reasoning");
    if (!isSealed || this.#callIds.length === 0) return undefined;
    const json = JSON.stringify(parts.map((part) => toJson(PartSchema, part)));
    return { callIds: this.#callIds, json };
  }

  #add(index: number, part: Part): void {
    const { kind } = part;
    if (kind.case === "toolCall") {
      const { id } = kind.value;
      this.#callIds.push(id);
      this.#parts.set(index, create(PartSchema, { kind: { case: "toolCall", value: { id } } }));
    }
    if (kind.case === "text") {
      this.#parts.set(index, create(PartSchema, { kind: { case: "text", value: {} } }));
    }
    if (kind.case !== "reasoning") return;
    this.#parts.set(index, {
      ...part,
      kind: { case: "reasoning", value: { ...kind.value } },
    });
  }

  #addDelta(index: number, delta: PartDeltaKind): void {
    const kind = this.#parts.get(index)?.kind;
    if (kind?.case !== "reasoning") return;
    const reasoning = kind.value;
    if (delta.case === "text") reasoning.text += delta.value;
    else if (delta.case === "summaryStart") reasoning.summaries = [...reasoning.summaries, ""];
    else if (delta.case === "summary") {
      const last = reasoning.summaries.at(-1) ?? "";
      reasoning.summaries = [...reasoning.summaries.slice(0, -1), last + delta.value];
    } else if (delta.case === "seal") reasoning.seal = delta.value;
  }
}

type PartDeltaKind = Extract<GenerateEvent["kind"], { case: "partDelta" }>["value"]["delta"];
