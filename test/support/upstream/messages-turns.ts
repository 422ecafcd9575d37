/** Anthropic's rules for the turns of a conversation: order, tool results, thinking. */
import { isObject } from "./exchange.ts";
import { type Json, objects, string } from "./read.ts";
import { sign, unseal } from "./seal.ts";
import { invalid, type Path } from "./shape.ts";

/** Changes of the rules by the request. */
export interface TurnRules {
  /** Whether thinking is enabled with a budget. */
  readonly isThinking: boolean;
  /** Whether the version is 2026-10-21. */
  readonly isNewest: boolean;
}

/** Throws ShapeError for turns that do not belong together. */
export function checkTurns(messages: readonly Json[], rules: TurnRules): void {
  for (const [at, message] of messages.entries()) {
    checkContent(message, ["messages", at, "content"], at === messages.length - 1);
    checkBlocks(message, ["messages", at, "content"], rules);
  }
  checkToolResults(messages);
  checkSystem(messages);
  if (rules.isThinking) checkStartsThinking(messages);
}

function checkContent(message: Json, path: Path, isLast: boolean): void {
  const { role, content } = message;
  const isEmpty = (content as string | readonly unknown[]).length === 0;
  if (isEmpty && !(isLast && role === "assistant")) {
    invalid(path, `${string(role)} messages must have non-empty content`);
  }
  if (typeof content === "string" && !isEmpty && !/\S/.test(content)) {
    invalid(path, "text content blocks must contain non-whitespace text");
  }
  const blocks = objects(content);
  const end = typeof content === "string" ? content : string(blocks.at(-1)?.["text"]);
  if (isLast && role === "assistant" && /\s$/.test(end)) {
    invalid(path, "final assistant content cannot end with trailing whitespace");
  }
}

const onlyUser = new Set(["image", "document", "tool_result", "search_result"]);
const onlyAssistant = new Set(["thinking", "redacted_thinking", "tool_use"]);

function checkBlocks({ role, content }: Json, path: Path, { isNewest }: TurnRules): void {
  for (const [at, block] of objects(content).entries()) {
    const type = string(block["type"]);
    const here = [...path, at];
    if ((role === "assistant" ? onlyUser : onlyAssistant).has(type)) {
      const isAllowed = type === "document" && role === "assistant" && !isNewest;
      if (!isAllowed) {
        invalid(here, `\`${type}\` blocks are not permitted in ${string(role)} messages`);
      }
    }
    if (type === "text") checkText(block, here, role === "user" && isNewest);
    if (type === "tool_result") {
      for (const [inner, part] of objects(block["content"]).entries()) {
        if (part["type"] === "text") checkText(part, [...here, "content", inner], false);
      }
    }
    if (type === "thinking" && block["signature"] !== signatureOf(block)) {
      invalid(here, "Invalid `signature` in `thinking` block");
    }
    if (type === "redacted_thinking" && !unseal(string(block["data"]), "messages")) {
      invalid(here, "Invalid `data` in `redacted_thinking` block");
    }
  }
}

/** The text is signed, unless it was left out of the reply: then its absence is. */
function signatureOf(block: Json): string {
  return sign({ issuer: "messages", id: "", text: string(block["thinking"]) });
}

function checkText(block: Json, path: Path, refusesCitations: boolean): void {
  const text = string(block["text"]);
  if (text === "") invalid(path, "text content blocks must be non-empty");
  if (!/\S/.test(text)) invalid(path, "text content blocks must contain non-whitespace text");
  if (refusesCitations && objects(block["citations"]).length > 0) {
    invalid([...path, "citations"], "Extra inputs are not permitted");
  }
}

/** System text among the messages follows the user, and is last or followed by the assistant. */
function checkSystem(messages: readonly Json[]): void {
  for (const [at, { role }] of messages.entries()) {
    if (role !== "system") continue;
    const [before, after] = [messages[at - 1]?.["role"], messages[at + 1]?.["role"]];
    if (before === "user" && (after === undefined || after === "assistant")) continue;
    invalid(
      ["messages", at],
      "role 'system' must follow a user message, and be the last message or precede an assistant message",
    );
  }
}

/** Consecutive turns of one role count as one. */
function merged(messages: readonly Json[]): Array<{ at: number; role: unknown; blocks: Json[] }> {
  const turns: Array<{ at: number; role: unknown; blocks: Json[] }> = [];
  for (const [at, { role, content }] of messages.entries()) {
    const blocks =
      isObject(content) || typeof content === "string"
        ? [{ type: "text", text: content }]
        : objects(content);
    const last = turns.at(-1);
    if (last !== undefined && last.role === role) last.blocks.push(...blocks);
    else turns.push({ at, role, blocks });
  }
  return turns;
}

function checkToolResults(messages: readonly Json[]): void {
  const turns = merged(messages);
  const seen = new Set<string>();
  for (const [index, { at, role, blocks }] of turns.entries()) {
    if (role === "user") checkResults(blocks, turns[index - 1]?.blocks ?? [], at);
    if (role !== "assistant") continue;
    const ids = idsOfCalls(blocks);
    for (const id of ids) {
      if (seen.has(id)) invalid(["messages", at], "`tool_use` ids must be unique");
      seen.add(id);
    }
    const answered = idsOfResults(turns[index + 1]?.blocks ?? []);
    const left = ids.filter((id) => !answered.includes(id));
    if (left.length > 0) {
      invalid(
        ["messages", at],
        `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${left.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      );
    }
  }
}

/** The results of a user turn, which come first in it, belong to the calls of the turn before. */
function checkResults(blocks: readonly Json[], before: readonly Json[], at: number): void {
  const results = idsOfResults(blocks);
  const asked = idsOfCalls(before);
  const stray = results.find((id) => !asked.includes(id));
  if (stray !== undefined) {
    invalid(
      ["messages", at, "content"],
      `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    );
  }
  if (new Set(results).size < results.length) {
    invalid(["messages", at], "each tool_use must have a single result");
  }
  const first = blocks.findIndex(({ type }) => type !== "tool_result");
  const last = blocks.findLastIndex(({ type }) => type === "tool_result");
  if (first !== -1 && first < last) {
    invalid(["messages", at], "`tool_result` blocks must come first in the content");
  }
}

function idsOfCalls(blocks: readonly Json[]): string[] {
  return blocks.filter(({ type }) => type === "tool_use").map((block) => string(block["id"]));
}

function idsOfResults(blocks: readonly Json[]): string[] {
  return blocks
    .filter(({ type }) => type === "tool_result")
    .map((block) => string(block["tool_use_id"]));
}

/** Within a loop of tools, the last assistant turn begins with its thinking. */
function checkStartsThinking(messages: readonly Json[]): void {
  const turns = merged(messages);
  const last = turns.at(-1);
  const assistant = turns.at(-2);
  if (assistant === undefined || !last?.blocks.some(({ type }) => type === "tool_result")) return;
  const [first] = assistant.blocks;
  if (!/thinking$/.test(string(first?.["type"]))) {
    invalid(
      ["messages", assistant.at, "content", 0, "type"],
      `Expected \`thinking\` or \`redacted_thinking\`, but found \`${string(first?.["type"])}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks).`,
    );
  }
}
