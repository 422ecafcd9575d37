/**
 * Only this style's compatible vendors attach members to a call or a message that must return with
 * it: thought signatures of Gemini and of proxies before it, reasoning of OpenRouter and LiteLLM.
 * Clients of other styles carry them in the seal of a reasoning.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Reasoning } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { partDelta, partEnd, partStart } from "../generate-events.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import {
  changeMembers,
  type JsonSource,
  listElements,
  objectMembers,
  writeMembers,
} from "../../wire/json/source.ts";
import { isRecord, type JsonRecord, parseRecord, textAt } from "../../wire/json/value.ts";
import { newPart } from "../turns/parts.ts";

/** Such members of a call: of Gemini's compatible endpoint, of LiteLLM, of other proxies. */
const callMembers = ["extra_content", "provider_specific_fields", "thought_signature"] as const;

/**
 * Such members of a message: of Gemini's compatible endpoint, of LiteLLM, of OpenRouter and
 * MiniMax, of Copilot.
 */
const messageMembers = [
  "extra_content",
  "provider_specific_fields",
  "thinking_blocks",
  "reasoning_details",
  "reasoning_opaque",
] as const;

/** Members of a message that also show the reasoning's text. */
export const shownDetails = ["reasoning_details", "thinking_blocks"] as const;

/** The texts of an entry of such a member, which come in pieces. */
const pieceNames = ["text", "summary", "thinking"] as const;

/** Members, each as its JSON. */
export type OpaqueMembers = ReadonlyMap<string, string>;

/** The members of a call that must return with it. */
export function membersOfCall(wire: JsonRecord, source: JsonSource): OpaqueMembers {
  return membersAt(wire, callMembers, source);
}

/** Whether a call has members that must return with it. */
export function hasMembers(wire: JsonRecord): boolean {
  return callMembers.some((name) => !isEmpty(wire[name]));
}

function membersAt(wire: JsonRecord, names: readonly string[], source: JsonSource): OpaqueMembers {
  const found = names.filter((name) => !isEmpty(wire[name]));
  return new Map(found.map((name) => [name, source.memberText(wire, name)]));
}

/** Whether a value says nothing, at any depth. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  if (Array.isArray(value)) return value.every(isEmpty);
  return isRecord(value) && Object.values(value).every(isEmpty);
}

/** The text of a reasoning that is shown in such members only. */
export function detailsText(said: JsonRecord): string {
  for (const name of shownDetails) {
    const list = said[name];
    const entries = Array.isArray(list) ? list.filter(isRecord) : [];
    const text = entries
      .flatMap((entry) => pieceNames.map((piece) => textAt(entry, piece)))
      .join("");
    if (text !== "") return text;
  }
  return "";
}

/** Collects the members of a streamed message. */
export class MessageMembers {
  /** Members that were not taken yet. Lists are stored by entry. */
  readonly #waiting = new Map<string, string | string[]>();
  /** Names that deltas contained: a whole message repeats them. */
  readonly #told = new Set<string>();

  /**
   * Adds the members of a delta or message. @param isRepeated whether it is a whole message behind
   * deltas
   */
  add(said: JsonRecord, source: JsonSource, isRepeated: boolean): void {
    for (const [name, json] of membersAt(said, messageMembers, source)) {
      if (isRepeated && this.#told.has(name)) continue;
      this.#told.add(name);
      const before = this.#waiting.get(name);
      if (!Array.isArray(said[name])) this.#waiting.set(name, json);
      else this.#waiting.set(name, joined(Array.isArray(before) ? before : [], listElements(json)));
    }
  }

  /** Returns the members since the last call; empty if there are none. */
  take(): OpaqueMembers {
    const members = [...this.#waiting].map(
      ([name, value]) => [name, Array.isArray(value) ? `[${value.join(",")}]` : value] as const,
    );
    this.#waiting.clear();
    return new Map(members);
  }
}

/**
 * Adds entries to a list. An entry that continues the last one is joined to it, as in a whole
 * message.
 */
function joined(before: readonly string[], more: readonly string[]): string[] {
  const all = [...before];
  for (const json of more) {
    const last = all.at(-1);
    const both = last === undefined ? undefined : joinedEntry(last, json);
    if (both === undefined) all.push(json);
    else all.splice(-1, 1, both);
  }
  return all;
}

function joinedEntry(before: string, more: string): string | undefined {
  const one = parseRecord(before) ?? {};
  const other = parseRecord(more) ?? {};
  const piece = pieceNames.find((name) => typeof one[name] === "string");
  const isSame = one["type"] === other["type"] && one["index"] === other["index"];
  const hasEnd = textAt(one, "signature") !== "" || textAt(one, "data") !== "";
  if (piece === undefined || !isSame || hasEnd) return undefined;
  const changes = objectMembers(more).filter(({ name }) => !isEmpty(other[name]));
  return changeMembers(before, {
    ...Object.fromEntries(changes.map(({ name, json }) => [name, json])),
    [piece]: JSON.stringify(textAt(one, piece) + textAt(other, piece)),
  });
}

const mark = "members:";

/**
 * Returns the reasoning that carries members. @param callId ID of their call; empty if the members
 * belong to the message
 */
function carrierOf(callId: string, members: OpaqueMembers): Reasoning {
  const data = writeMembers([...members].map(([name, json]) => ({ name, json })));
  return {
    $typeName: "uas.inference.v1.Reasoning",
    text: "",
    summaries: [],
    itemId: "",
    seal: {
      $typeName: "uas.inference.v1.ReasoningSeal",
      dialect: Dialect.CHAT_COMPLETIONS,
      signature: `${mark}${callId}`,
      data,
    },
  };
}

/**
 * Adds the reasoning that carries members to a reply, if there are any. @param nextPart returns its
 * number
 */
export function pushCarrier(
  nextPart: () => number,
  { callId, members }: { readonly callId: string; readonly members: OpaqueMembers },
  events: GenerateEvent[],
): void {
  if (members.size === 0) return;
  const index = nextPart();
  const { seal, ...reasoning } = carrierOf(callId, members);
  events.push(partStart(index, newPart({ case: "reasoning", value: reasoning })));
  if (seal !== undefined) events.push(partDelta(index, { case: "seal", value: seal }));
  events.push(partEnd(index));
}

/** The members that a reasoning carries; undefined if it carries none. */
export function carriedMembers({
  seal,
}: Pick<Reasoning, "seal">):
  | { readonly callId: string; readonly members: OpaqueMembers }
  | undefined {
  if (seal?.dialect !== Dialect.CHAT_COMPLETIONS || !seal.signature.startsWith(mark)) {
    return undefined;
  }
  // A client may have made the seal up: other members are not its to set.
  const isKnown = (name: string): boolean =>
    [...callMembers, ...messageMembers].some((known) => known === name);
  const members = objectMembers(seal.data).filter(({ name }) => isKnown(name));
  const callId = seal.signature.slice(mark.length);
  return { callId, members: new Map(members.map(({ name, json }) => [name, json])) };
}

/** Adds members to a call or message. Lists that several reasonings carry are joined. */
export function addMembers(wire: Record<string, unknown>, members: OpaqueMembers): void {
  for (const [name, json] of members) {
    const before = wire[name];
    const first = before instanceof JsonText ? listElements(before.text) : [];
    const all = joined(first, listElements(json));
    wire[name] = new JsonText(first.length > 0 ? `[${all.join(",")}]` : json);
  }
}
