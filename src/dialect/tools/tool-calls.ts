/**
 * Counts the calls of vendors' own tools in a reply, where its usage does not report them. Pure.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { OpaquePart, Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { ToolCalls } from "../features/billed-features.ts";
import { parseRecord, recordAt, textAt } from "../../wire/json/value.ts";

/** Counts calls while a reply comes. */
export class ToolCallCount {
  #calls: { -readonly [Member in keyof ToolCalls]: number } | undefined;

  /** The calls so far; undefined means none, as in nearly every reply. */
  get calls(): ToolCalls | undefined {
    return this.#calls;
  }

  /** Counts one call. @param member undefined if it is not a billable tool */
  add(member: keyof ToolCalls | undefined): void {
    if (member === undefined) return;
    this.#calls ??= {};
    this.#calls[member] = (this.#calls[member] ?? 0) + 1;
  }

  /** Counts a part of a decoded reply. */
  addPart(part: Part | undefined): void {
    if (part?.kind.case === "opaque") this.add(toolOfPart(part.kind.value));
  }
}

/** Counts the calls in a complete reply; undefined if there is none. */
export function countTools(parts: readonly Part[]): ToolCalls | undefined {
  const count = new ToolCallCount();
  for (const part of parts) count.addPart(part);
  return count.calls;
}

/** The calls in all choices of a reply; undefined if there is none. */
export function sumToolCalls(all: readonly (ToolCalls | undefined)[]): ToolCalls | undefined {
  const sum: { -readonly [Member in keyof ToolCalls]: number } = {};
  for (const calls of all) {
    for (const [member, count] of Object.entries(calls ?? {})) {
      const name = member as keyof ToolCalls;
      sum[name] = (sum[name] ?? 0) + (count ?? 0);
    }
  }
  return Object.keys(sum).length === 0 ? undefined : sum;
}

function toolOfPart({ dialect, type, json }: OpaquePart): keyof ToolCalls | undefined {
  if (dialect === Dialect.GEMINI) return type === "executableCode" ? "codeExecutions" : undefined;
  const block = parseRecord(json) ?? {};
  if (dialect === Dialect.MESSAGES) return toolOfBlock(type, textAt(block, "name"));
  if (dialect !== Dialect.RESPONSES) return undefined;
  return toolOfItem(type, textAt(recordAt(block, "action") ?? {}, "type"));
}

/**
 * The tool of a content block of messages. Its usage reports searches and fetches, but no runs of
 * code.
 */
export function toolOfBlock(type: string, name: string): keyof ToolCalls | undefined {
  const isRun = type === "server_tool_use" && /(?:^|_)code_execution$/.test(name);
  return isRun ? "codeExecutions" : undefined;
}

/**
 * The tool of an output item of responses. @param action the type of its action: only searches are
 * billed
 */
export function toolOfItem(type: string, action: string): keyof ToolCalls | undefined {
  if (type !== "web_search_call") return itemTools.get(type);
  return action === "" || action === "search" ? "webSearches" : undefined;
}

const itemTools: ReadonlyMap<string, keyof ToolCalls> = new Map([
  ["code_interpreter_call", "codeExecutions"],
  ["shell_call", "codeExecutions"],
  ["file_search_call", "fileSearches"],
]);
