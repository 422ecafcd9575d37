/** The content of responses messages and tool results, written for a vendor. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type Extra,
  type OpaquePart,
  type Part,
  type Reasoning,
  Role,
  type TextPart,
  type ToolCall,
  type ToolResult,
  ToolType,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { invalid } from "../../core/validation.ts";
import type { JsonText } from "../../wire/json/json-tree.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import { refusePrefill } from "../turns/parts.ts";
import { portableTurns } from "../turns/portable-turns.ts";
import { placeSystem } from "../turns/system-turns.ts";
import { annotationJson } from "./citation.ts";
import { contentType } from "./decode-content.ts";
import type { EncodeContext } from "./encode-context.ts";
import { encodeMedia } from "./media.ts";
import { callIdFor } from "./wire.ts";

/** Whether a part belongs inside a message; all others are separate items. */
function isContent({ kind }: Part): boolean {
  switch (kind.case) {
    case "text":
    case "media":
    case "refusal":
      return true;
    case "opaque":
      return contentType.test(kind.value.type);
    case "toolCall":
    case "toolResult":
    case "reasoning":
    case undefined:
    default:
      return false;
  }
}

/**
 * Writes one part of a message. Parts specific to this style keep the author's text with all its
 * members.
 */
function encodePart(part: Part, role: Role, context: EncodeContext): JsonRecord | JsonText {
  const { kind } = part;
  if (kind.case === "opaque") {
    if (!context.isOwn) context.withExtras(context.breakpoint(part.cacheHint, role), part.extras);
    return opaqueJson(kind.value, context);
  }
  const breakpoint = context.breakpoint(part.cacheHint, role);
  return context.withExtras(
    { ...encodeContentPart(part, role, context), ...breakpoint },
    part.extras,
  );
}

function encodeContentPart({ kind }: Part, role: Role, context: EncodeContext): JsonRecord {
  const isAssistant = role === Role.ASSISTANT;
  switch (kind.case) {
    case "text":
      return isAssistant ? outputText(kind.value, context) : inputText(kind.value, context);
    case "refusal":
      return isAssistant
        ? { type: "refusal", refusal: kind.value.text }
        : { type: "input_text", text: kind.value.text };
    case "media":
      if (!isAssistant) return encodeMedia(kind.value, context);
      throw invalid(undefined, "The model's vendor accepts only text in messages of the assistant");
    case "opaque":
    case "toolCall":
    case "toolResult":
    case "reasoning":
    case undefined:
    default:
      throw invalid(undefined, "A part has no type: send text, media or a tool call");
  }
}

/** @throws GatewayError INVALID_REQUEST for a part specific to another style */
function opaqueJson({ dialect, type, json }: OpaquePart, context: EncodeContext): JsonText {
  if (dialect === Dialect.RESPONSES) return context.json(json, "turns.parts.opaque.json");
  throw invalid(
    undefined,
    `"${type}" is not supported with this model: leave it out of the conversation`,
  );
}

function inputText({ text, citations }: TextPart, context: EncodeContext): JsonRecord {
  if (citations.length > 0) context.drop("citations");
  return { type: "input_text", text };
}

function outputText({ text, citations }: TextPart, context: EncodeContext): JsonRecord {
  const annotations: unknown[] = [];
  for (const citation of citations) {
    const annotation = annotationJson(citation, text.length);
    if (annotation === undefined) context.drop("citations");
    else annotations.push(annotation);
  }
  return { type: "output_text", text, annotations };
}

/**
 * Writes a tool's result: a string if it is text only, else parts. A failure becomes text, because
 * this style has no member for it.
 */
function resultOutput(result: ToolResult, context: EncodeContext): unknown {
  const { parts, plain } = result;
  const texts = parts.map(({ kind }) => (kind.case === "text" ? kind.value.text : undefined));
  const isText = texts.every((text) => text !== undefined);
  const isHinted =
    context.takesBreakpoints && parts.some(({ cacheHint }) => cacheHint !== undefined);
  if (isText && !isHinted && (plain || !context.isOwn)) {
    for (const part of parts) encodePart(part, Role.USER, context);
    return (result.isError ? "Error: " : "") + texts.join("\n");
  }
  const written = parts.map((part) => encodePart(part, Role.USER, context));
  return result.isError ? [{ type: "input_text", text: "Error: " }, ...written] : written;
}

/** A conversation as this style has it. */
interface EncodedTurns {
  /** Undefined if there is none. */
  readonly instructions: string | undefined;
  readonly input: readonly (JsonRecord | JsonText)[];
}

/**
 * Writes turns. Leading developer text becomes the instructions if it was written there, or if it
 * comes from a style with a single place for it. Later system text keeps its position.
 */
export function encodeTurns(given: readonly Turn[], context: EncodeContext): EncodedTurns {
  const { drop, quirks } = context;
  const written = context.isOwn
    ? given
    : portableTurns(given, { dialect: Dialect.RESPONSES, drop, quirks });
  const turns = placeSystem(written, quirks.lateSystem ?? "in_place");
  const [first] = turns;
  const instructions = first && instructionsOf(first, context);
  const rest = instructions === undefined ? turns : turns.slice(1);
  refusePrefill(rest, context.source);
  const writer = new ItemWriter(context);
  return { instructions, input: rest.flatMap((turn) => writer.turn(turn)) };
}

function instructionsOf(turn: Turn, context: EncodeContext): string | undefined {
  const { role, roleWord, parts } = turn;
  if (role !== Role.SYSTEM || (roleWord !== "instructions" && roleWord !== "")) return undefined;
  const texts = parts.map(({ kind }) => (kind.case === "text" ? kind.value.text : undefined));
  if (texts.length === 0 || texts.includes(undefined)) return undefined;
  for (const part of parts) encodePart(part, Role.SYSTEM, context);
  dropTurnExtras(turn, context);
  return texts.join("\n\n");
}

function dropTurnExtras({ extras, name }: Turn, context: EncodeContext): void {
  if (name !== "") context.drop("turns.name");
  for (const extra of extras) context.drop(extra.name);
}

/** Writes the turns of one conversation, in order. */
class ItemWriter {
  readonly #context: EncodeContext;
  /** IDs of calls with free text, because results of some styles do not state it. */
  readonly #customCalls = new Set<string>();

  constructor(context: EncodeContext) {
    this.#context = context;
  }

  turn(turn: Turn): (JsonRecord | JsonText)[] {
    const items: (JsonRecord | JsonText)[] = [];
    let content: Part[] = [];
    let hasMessage = false;
    const endMessage = (): void => {
      if (content.length === 0) return;
      items.push(this.#message(turn, content));
      hasMessage = true;
      content = [];
    };
    for (const part of turn.parts) {
      if (isContent(part)) {
        content.push(part);
        continue;
      }
      endMessage();
      const item = this.#item(part);
      if (item !== undefined) items.push(item);
    }
    endMessage();
    if (turn.parts.length === 0 && this.#context.isOwn) items.push(this.#message(turn, []));
    else if (!hasMessage) dropTurnExtras(turn, this.#context);
    return items;
  }

  #message(turn: Turn, parts: readonly Part[]): JsonRecord {
    const context = this.#context;
    if (turn.name !== "") context.drop("turns.name");
    const id = context.identity("message", turn.itemId);
    const isAssistant = turn.role === Role.ASSISTANT;
    const message = {
      type: "message",
      role: wireRole(turn, context),
      ...id,
      ...(isAssistant && "id" in id && { status: "completed" }),
      content: plainText(turn, parts) ?? parts.map((each) => encodePart(each, turn.role, context)),
    };
    return context.withExtras(message, turn.extras);
  }

  #item(part: Part): JsonRecord | JsonText | undefined {
    const { kind, extras, cacheHint } = part;
    if (cacheHint !== undefined) this.#context.drop("cache_hint");
    switch (kind.case) {
      case "toolCall":
        return this.#call(kind.value, extras);
      case "toolResult":
        return this.#result(kind.value, extras);
      case "reasoning": {
        const item = this.#reasoning(kind.value);
        return item && this.#context.withExtras(item, extras);
      }
      case "opaque":
        return opaqueJson(kind.value, this.#context);
      case "text":
      case "media":
      case "refusal":
      case undefined:
      default:
        throw invalid(undefined, "A part has no type: send text, media or a tool call");
    }
  }

  #call(call: ToolCall, extras: readonly Extra[]): JsonRecord {
    const isCustom = call.type === ToolType.CUSTOM;
    if (isCustom) this.#customCalls.add(call.id);
    const type = isCustom ? "custom_tool_call" : "function_call";
    const id = this.#context.identity(type, call.itemId);
    const item = {
      type,
      ...id,
      call_id: callIdFor(call.id),
      ...(call.namespace && { namespace: call.namespace }),
      name: this.#context.toolName(call.name),
      ...(isCustom ? { input: call.input } : { arguments: call.input || "{}" }),
      ...("id" in id && { status: "completed" }),
    };
    return this.#context.withExtras(item, extras);
  }

  #result(result: ToolResult, extras: readonly Extra[]): JsonRecord {
    const isCustom = result.type === ToolType.CUSTOM || this.#customCalls.has(result.toolCallId);
    const type = isCustom ? "custom_tool_call_output" : "function_call_output";
    const item = {
      type,
      ...this.#context.identity(type, result.itemId),
      call_id: callIdFor(result.toolCallId),
      output: resultOutput(result, this.#context),
    };
    return this.#context.withExtras(item, extras);
  }

  /** Only what the vendor itself sealed goes back to it; other reasoning it would refuse. */
  #reasoning({ text, summaries, seal, itemId }: Reasoning): JsonRecord | undefined {
    const isSealed = seal?.dialect === Dialect.RESPONSES && seal.data !== "";
    if (!isSealed && (!this.#context.isOwn || seal !== undefined)) {
      this.#context.drop("turns.reasoning");
      return undefined;
    }
    return {
      type: "reasoning",
      ...this.#context.identity("reasoning", itemId),
      summary: summaries.map((each) => ({ type: "summary_text", text: each })),
      ...(text && { content: [{ type: "reasoning_text", text }] }),
      ...(isSealed && { encrypted_content: seal.data }),
    };
  }
}

function wireRole({ role, roleWord: word }: Turn, { quirks }: EncodeContext): string {
  switch (role) {
    case Role.USER:
      return "user";
    case Role.ASSISTANT:
      return "assistant";
    case Role.SYSTEM:
      return word === "developer" && quirks.developerRole !== "refused" ? "developer" : "system";
    case Role.UNSPECIFIED:
    default:
      throw invalid(undefined, "A message has no role: send system, user or assistant");
  }
}

/** The text of a message that can be written as a plain string. */
function plainText(turn: Turn, [part, ...more]: readonly Part[]): string | undefined {
  if (!turn.plain || part?.kind.case !== "text" || more.length > 0) return undefined;
  const hasMore =
    part.extras.length > 0 || part.cacheHint !== undefined || part.kind.value.citations.length > 0;
  return hasMore ? undefined : part.kind.value.text;
}
