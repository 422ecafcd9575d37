/** Gives the tools of a reply back the names and forms that the caller knows them by. Pure. */
import {
  ToolType,
  type Part,
  type Tool,
  type ToolCall,
} from "../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, Reply } from "../../gen/uas/inference/v1/generate_pb.ts";
import { unwrapCustomInput } from "./custom-tools.ts";
import { restoreToolName } from "./tool-names.ts";

/** Restores the tools of one reply. */
export class ToolRestorer {
  /** By the name that the vendor was told. */
  readonly #find: (wireName: string) => KnownTool | undefined;
  /** The inputs of custom tools that the vendor takes for functions, by part: they must be unwrapped whole. */
  readonly #wrapped = new Map<number, string>();

  /** @param tools those of the request */
  constructor(tools: readonly Tool[]) {
    this.#find = toolFinder(tools);
  }

  /** The reply with its tools restored. */
  reply(reply: Reply): Reply {
    for (const part of reply.parts) {
      if (part.kind.case !== "toolCall") continue;
      const call = part.kind.value;
      if (this.#restore(call)) call.input = unwrapCustomInput(call.input);
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
      if (call !== undefined && this.#restore(call)) this.#wrapped.set(kind.value.index, "");
    } else if (kind.case === "partDelta" && kind.value.delta.case === "input") {
      const { index, delta } = kind.value;
      const so = this.#wrapped.get(index);
      if (so === undefined) return [event];
      this.#wrapped.set(index, so + delta.value);
      return [];
    } else if (kind.case === "partEnd") {
      const whole = this.#wrapped.get(kind.value.index);
      if (whole === undefined) return [event];
      this.#wrapped.delete(kind.value.index);
      return [inputDelta(kind.value.index, unwrapCustomInput(whole)), event];
    }
    return [event];
  }

  /** Returns whether the call's input is a custom tool's, wrapped for a vendor that has none. */
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

function concernsTools({ kind }: GenerateEvent): boolean {
  if (kind.case === "partDelta") return kind.value.delta.case === "input";
  return kind.case === "partStart" || kind.case === "partEnd";
}

function toolCallOf(part: Part | undefined): ToolCall | undefined {
  return part?.kind.case === "toolCall" ? part.kind.value : undefined;
}

function inputDelta(index: number, value: string): GenerateEvent {
  return {
    $typeName: "uas.inference.v1.GenerateEvent",
    kind: {
      case: "partDelta",
      value: {
        $typeName: "uas.inference.v1.PartDelta",
        index,
        delta: { case: "input", value },
      },
    },
  };
}

/** A tool as the caller knows it. */
interface KnownTool {
  readonly name: string;
  readonly namespace: string;
  readonly type: ToolType;
}

/** Finds the tool that a vendor's call means, by the name that the vendor was told. */
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
