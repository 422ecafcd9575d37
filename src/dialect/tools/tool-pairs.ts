/**
 * Arranges tool calls and their results as vendors demand: IDs are unique, and one result of each
 * call directly follows it. Some vendors count IDs per turn, so they repeat in each turn; some
 * clients send results late, or twice. Pure.
 */
import {
  type Part,
  Role,
  type ToolCall,
  type ToolResult,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { newTurn } from "../turns/parts.ts";

/** A vendor's rules for calls and results. */
export interface PairRules {
  /** Whether no two calls may have the same id. */
  readonly areIdsUnique: boolean;
  /** Whether each call has one result, directly after it. */
  readonly areResultsPaired: boolean;
}

/**
 * The turns in that form; the same array if they are so already. A result without a call, and a
 * call without a result, stay as they are: nothing could be put in their place.
 */
export function pairToolCalls(turns: readonly Turn[], rules: PairRules): readonly Turn[] {
  if (arePaired(turns)) return turns;
  const pairing = new Pairing(rules);
  for (const turn of turns) pairing.add(turn);
  return pairing.finish();
}

function arePaired(turns: readonly Turn[]): boolean {
  const seen = new Set<string>();
  const open = new Set<string>();
  let wasAssistant = false;
  for (const { role, parts } of turns) {
    const isAssistant = role === Role.ASSISTANT;
    if (isAssistant && !wasAssistant && open.size > 0) return false;
    wasAssistant = isAssistant;
    for (const { kind } of parts) {
      if (kind.case === "toolCall") {
        const { id } = kind.value;
        if (id === "" || seen.has(id)) return false;
        seen.add(id);
        open.add(id);
      } else if (kind.case === "toolResult" && !open.delete(kind.value.toolCallId)) return false;
    }
  }
  return true;
}

/** A call whose results are searched. */
interface PairedCall {
  /** Its id as it is sent. */
  readonly id: string;
  /** The turns that follow the call's, up to the next turn of the assistant. */
  readonly following: Turn[];
  /** Its result, once one came. */
  result: ToolResult | undefined;
}

/** Turns of the assistant that follow each other, or turns of others that do. */
interface Run {
  readonly isAssistant: boolean;
  readonly turns: Turn[];
}

/** Pairs the calls and results of one conversation. */
class Pairing {
  readonly #rules: PairRules;
  readonly #runs: Run[] = [];
  readonly #used = new Set<string>();
  /** The calls by the id that the client gave them, in order. */
  readonly #calls = new Map<string, PairedCall[]>();
  /** The turns that will follow the last run of the assistant. */
  #following: Turn[] = [];

  constructor(rules: PairRules) {
    this.#rules = rules;
  }

  add(turn: Turn): void {
    const isAssistant = turn.role === Role.ASSISTANT;
    const last = this.#runs.at(-1);
    if (last?.isAssistant !== isAssistant) {
      if (isAssistant) this.#following = [];
      this.#runs.push({ isAssistant, turns: isAssistant ? [] : this.#following });
    }
    const parts = turn.parts.flatMap((part) => this.#part(part));
    const isLeft = parts.length > 0 || turn.parts.length === 0;
    if (isLeft) this.#runs.at(-1)?.turns.push({ ...turn, parts });
  }

  finish(): readonly Turn[] {
    return this.#runs.flatMap(({ turns }) => turns);
  }

  #part(part: Part): readonly Part[] {
    const { kind } = part;
    if (kind.case === "toolCall") return [this.#call(part, kind.value)];
    if (kind.case === "toolResult") return this.#result(part, kind.value);
    return [part];
  }

  #call(part: Part, value: ToolCall): Part {
    const call = { id: this.#uniqueId(value.id), following: this.#following, result: undefined };
    const known = this.#calls.get(value.id);
    if (known === undefined) this.#calls.set(value.id, [call]);
    else known.push(call);
    return { ...part, kind: { case: "toolCall", value: { ...value, id: call.id } } };
  }

  #uniqueId(id: string): string {
    if (!this.#rules.areIdsUnique) return id;
    let unique = id === "" ? "call" : id;
    for (let count = 2; this.#used.has(unique); count++) unique = `${id || "call"}_${count}`;
    this.#used.add(unique);
    return unique;
  }

  #result(part: Part, value: ToolResult): readonly Part[] {
    const call = this.#callOf(value);
    if (call === undefined) return [part];
    const { result } = call;
    if (result !== undefined && this.#rules.areResultsPaired) {
      result.parts = [...result.parts, ...value.parts];
      result.isError ||= value.isError;
      result.plain = false;
      return [];
    }
    const own = { ...value, toolCallId: call.id };
    call.result = own;
    const written: Part = { ...part, kind: { case: "toolResult", value: own } };
    if (call.following === this.#following || !this.#rules.areResultsPaired) return [written];
    call.following.push(newTurn(Role.USER, [written]));
    return [];
  }

  /** Of calls with the same id: the first without a result, of the last turn if there is one. */
  #callOf({ toolCallId }: ToolResult): PairedCall | undefined {
    const calls = this.#calls.get(toolCallId) ?? [];
    const open = calls.filter(({ result }) => result === undefined);
    const near = open.find(({ following }) => following === this.#following);
    return near ?? open[0] ?? calls.at(-1);
  }
}
