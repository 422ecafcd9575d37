/**
 * Restores the names and forms of a reply's tools that the caller uses. The input of a function
 * becomes an object: models and vendors without parameters write `null` or nothing. Pure.
 */
import {
  ToolType,
  type Part,
  type Tool,
  type ToolCall,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, Reply } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { unwrapCustomInput } from "./custom-tools.ts";
import { inputDelta } from "../generate-events.ts";
import { restoreToolName } from "./tool-names.ts";

/** Restores the tools of one reply. */
export class ToolRestorer {
  /** By the name that was sent to the vendor. */
  readonly #find: (wireName: string) => KnownTool | undefined;
  /**
   * The inputs of custom tools that the vendor takes for functions, by part: they must be unwrapped
   * whole.
   */
  readonly #wrapped = new Map<number, string>();
  /** Inputs of functions of which nothing but a beginning of `null` has come, by part. */
  readonly #empty = new Map<number, string>();

  /** @param tools the request's tools */
  constructor(tools: readonly Tool[]) {
    this.#find = toolFinder(tools);
  }

  /** The reply with its tools restored. */
  reply(reply: Reply): Reply {
    for (const part of reply.parts) {
      if (part.kind.case !== "toolCall") continue;
      const call = part.kind.value;
      if (this.#restore(call)) call.input = unwrapCustomInput(call.input);
      else if (call.type !== ToolType.CUSTOM) call.input = objectInput(call.input);
    }
    return reply;
  }

  /** The events with their tools restored. */
  events(events: GenerateEvent[]): GenerateEvent[] {
    // Nearly every event is a text's.
    return events.some(concernsTools) ? events.flatMap((event) => this.#event(event)) : events;
  }

  #event(event: GenerateEvent): GenerateEvent[] {
    const { kind } = event;
    if (kind.case === "partStart") {
      const call = toolCallOf(kind.value.part);
      if (call === undefined) return [event];
      if (this.#restore(call)) this.#wrapped.set(kind.value.index, "");
      else if (call.type !== ToolType.CUSTOM && call.input === "") {
        this.#empty.set(kind.value.index, "");
      }
    } else if (kind.case === "partDelta" && kind.value.delta.case === "input") {
      return this.#input(kind.value.index, kind.value.delta.value, event);
    } else if (kind.case === "partEnd") return [...this.#rest(kind.value.index), event];
    return [event];
  }

  #input(index: number, delta: string, event: GenerateEvent): GenerateEvent[] {
    const wrapped = this.#wrapped.get(index);
    if (wrapped !== undefined) {
      this.#wrapped.set(index, wrapped + delta);
      return [];
    }
    const empty = this.#empty.get(index);
    if (empty === undefined) return [event];
    if (mayBeEmpty.test(empty + delta)) {
      this.#empty.set(index, empty + delta);
      return [];
    }
    this.#empty.delete(index);
    return [empty === "" ? event : inputDelta(index, empty + delta)];
  }

  /** Returns the rest of a call's input at its end. */
  #rest(index: number): GenerateEvent[] {
    const wrapped = this.#wrapped.get(index);
    if (wrapped !== undefined) {
      this.#wrapped.delete(index);
      return [inputDelta(index, unwrapCustomInput(wrapped))];
    }
    const empty = this.#empty.get(index);
    if (empty === undefined) return [];
    this.#empty.delete(index);
    return [inputDelta(index, objectInput(empty))];
  }

  /**
   * Returns whether the call's input belongs to a custom tool and was wrapped for a vendor without
   * custom tools.
   */
  #restore(call: ToolCall): boolean {
    const known = this.#find(call.name);
    if (known === undefined) return false;
    const isWrapped = known.type === ToolType.CUSTOM && call.type === ToolType.FUNCTION;
    call.name = known.name;
    call.namespace = known.namespace;
    call.type = known.type;
    return isWrapped;
  }
}

/** The beginnings of an input that is nothing. */
const mayBeEmpty = /^\s*(?:n|nu|nul|null)?\s*$/;

/** An input as an object: nothing at all becomes an empty one. What is cut short stays. */
function objectInput(input: string): string {
  const text = input.trim();
  return text === "" || text === "null" ? "{}" : input;
}

function concernsTools({ kind }: GenerateEvent): boolean {
  if (kind.case === "partDelta") return kind.value.delta.case === "input";
  return kind.case === "partStart" || kind.case === "partEnd";
}

function toolCallOf(part: Part | undefined): ToolCall | undefined {
  return part?.kind.case === "toolCall" ? part.kind.value : undefined;
}

/** A tool with the caller's name and form. */
interface KnownTool {
  readonly name: string;
  readonly namespace: string;
  readonly type: ToolType;
}

/** Finds the tool of a vendor's call by the name that was sent to the vendor. */
function toolFinder(tools: readonly Tool[]): (wireName: string) => KnownTool | undefined {
  const known = tools.flatMap(({ kind, namespace }): KnownTool[] => {
    if (kind.case === "function") {
      return [{ name: kind.value.name, namespace, type: ToolType.FUNCTION }];
    }
    return kind.case === "custom"
      ? [{ name: kind.value.name, namespace, type: ToolType.CUSTOM }]
      : [];
  });
  return (wireName) => restoreToolName(known, wireName);
}
