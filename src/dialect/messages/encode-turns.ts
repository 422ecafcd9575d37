/** The turns of a conversation, into `system` and `messages` for a vendor. */
import { type Part, Role, type Turn } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { type Block, encodePart } from "./encode-blocks.ts";
import type { JsonBranch, JsonTree } from "./json-text.ts";
import { type RequestWriter, refused } from "./request-writer.ts";

/** A message while it grows: turns of one role that follow each other become one. */
interface Message {
  readonly role: "user" | "assistant" | "system";
  readonly blocks: Block[];
  /** The whole content, where it came as one string. */
  plain: string | undefined;
  readonly extras: JsonBranch[];
}

/** What the turns become. */
export interface EncodedTurns {
  /** The members `system` and `messages`. */
  readonly members: JsonBranch;
  /** Whether the vendor can think on: the turn that it is to go on with begins with its own reasoning,
   * or it begins a new one. */
  readonly canThink: boolean;
}

const words: ReadonlyMap<Role, Message["role"]> = new Map([
  [Role.SYSTEM, "system"],
  [Role.USER, "user"],
  [Role.ASSISTANT, "assistant"],
]);

/**
 * @param addition a line that is added to the system text. Empty: none
 */
export function encodeTurns(
  turns: readonly Turn[],
  addition: string,
  writer: RequestWriter,
): EncodedTurns {
  const first = turns.findIndex(({ role }) => role !== Role.SYSTEM);
  const head = first < 0 ? turns : turns.slice(0, first);
  const system = encodeSystem(head, addition, writer);
  const messages = new MessageList();
  for (const turn of turns.slice(head.length)) messages.add(encodeTurn(turn, writer));
  const list = messages.finish();
  if (list.length === 0) {
    throw refused("The conversation has no message with content: send at least one", "messages");
  }
  return {
    members: { ...(system !== undefined && { system }), messages: list.map(writeMessage) },
    canThink: canThink(list),
  };
}

function encodeTurn(turn: Turn, writer: RequestWriter): Message {
  const { parts, plain, extras, name } = turn;
  const role = words.get(turn.role);
  if (role === undefined) throw refused("A message has no role", "messages");
  if (name !== "") writer.drop("turns.name");
  if (parts.some((part) => isOldOnly(role, part))) writer.needsOldVersion = true;
  const blocks: Block[] = [];
  for (const part of parts) {
    const block = encodePart(part, writer);
    if (block !== undefined) blocks.push(block);
  }
  return {
    role,
    blocks,
    plain: plain && blocks.length > 0 ? plainText(parts) : undefined,
    extras: extras.length === 0 ? [] : [writer.extras(extras)],
  };
}

/** What the newer version of the wire refuses: citations by users, documents by the model. */
function isOldOnly(role: Message["role"], { kind }: Part): boolean {
  if (role === "assistant") return kind.case === "media";
  return kind.case === "text" && kind.value.citations.length > 0;
}

/** The text of a turn that is nothing but one text. */
function plainText(parts: readonly Part[]): string | undefined {
  const [part] = parts;
  if (part?.kind.case !== "text" || parts.length > 1) return undefined;
  const { cacheHint, extras, kind } = part;
  return cacheHint === undefined && extras.length === 0 ? kind.value.text : undefined;
}

/** What stands before the first message: one string where it came as one, otherwise blocks. */
function encodeSystem(
  turns: readonly Turn[],
  addition: string,
  writer: RequestWriter,
): JsonTree | undefined {
  const messages = turns.map((turn) => encodeTurn(turn, writer));
  const [only, ...rest] = messages.filter(({ blocks }) => blocks.length > 0);
  if (only === undefined) return addition === "" ? undefined : addition;
  if (rest.length === 0 && only.plain !== undefined && addition === "") return only.plain;
  const blocks = [only, ...rest].flatMap((message) => message.blocks.map(({ json }) => json));
  return addition === "" ? blocks : [...blocks, { type: "text", text: addition }];
}

/** Messages in the order and grouping that the style demands. */
class MessageList {
  readonly #list: Message[] = [];
  /** The calls of the last assistant message that have no result yet. */
  readonly #open = new Set<string>();
  /** System messages that came between calls and their results, where the style allows none. */
  #waiting: Message[] = [];

  add(message: Message): void {
    if (message.blocks.length === 0) return;
    if (message.role === "system" && this.#open.size > 0) {
      this.#waiting.push(message);
      return;
    }
    if (message.role === "assistant") this.#flush();
    this.#append(message);
    for (const { type, id } of message.blocks) {
      if (type === "tool_use") this.#open.add(id);
      if (type === "tool_result") this.#open.delete(id);
    }
    if (this.#open.size === 0) this.#flush();
  }

  finish(): readonly Message[] {
    this.#flush();
    for (const { role, blocks } of this.#list) if (role === "user") sortResultsFirst(blocks);
    return this.#list;
  }

  /** System messages never stand at the very beginning: those of the beginning are the system text. */
  #flush(): void {
    // Most messages find nothing here, and emptying what is empty makes garbage.
    if (this.#open.size > 0) this.#open.clear();
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const message of waiting) this.#append(message);
  }

  #append(message: Message): void {
    const last = this.#list.at(-1);
    if (last?.role !== message.role) {
      this.#list.push(message);
      return;
    }
    last.blocks.push(...message.blocks);
    last.extras.push(...message.extras);
    last.plain = undefined;
  }
}

/** All results of a turn stand at the beginning of the message that follows it. */
function sortResultsFirst(blocks: Block[]): void {
  if (blocks.length < 2) return;
  const rank = ({ type }: Block): number => (type === "tool_result" ? 0 : 1);
  blocks.sort((a, b) => rank(a) - rank(b));
}

/** While it thinks, the vendor wants its own reasoning back at the start of a turn that it is to go on with:
 * `Expected thinking or redacted_thinking, but found tool_use`. */
function canThink(messages: readonly Message[]): boolean {
  const last = messages.findLast(({ role }) => role !== "system");
  const goesOn =
    last?.role === "assistant" || last?.blocks.some(({ type }) => type === "tool_result");
  if (!goesOn) return true;
  const turn = messages.findLast(({ role }) => role === "assistant");
  return turn === undefined || turn.blocks[0]?.type === "thinking";
}

function writeMessage({ role, blocks, plain, extras }: Message): JsonBranch {
  const content = plain ?? blocks.map(({ json }) => json);
  return extras.length === 0
    ? { role, content }
    : (Object.assign({ role, content }, ...extras) as JsonBranch);
}
