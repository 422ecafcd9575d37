/**
 * Encodes turns as contents with alternating roles user and model; system messages are separate.
 */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import {
  type OpaquePart,
  type Part,
  type Reasoning,
  type ReasoningSeal,
  Role,
  type ToolCall,
  type ToolResult,
  ToolType,
  type Turn,
} from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { append } from "../../core/append.ts";
import { invalid } from "../../core/validation.ts";
import type { EncodeContext } from "./encode-context.ts";
import { geminiToolName } from "./encode-tools.ts";
import { portableTurns } from "../turns/portable-turns.ts";
import { openPlace } from "./reasoning.ts";
import type { GeminiBlob, GeminiContent, GeminiPart, GeminiPiece } from "./wire.ts";
import { JsonText } from "../../wire/json/json-tree.ts";
import { type JsonRecord, parseRecord } from "../../wire/json/value.ts";
import { encodeMedia } from "./media.ts";

/** A conversation as Gemini has it. */
interface EncodedContents {
  readonly contents: readonly GeminiContent[];
  /** The system messages at the beginning; empty for none. */
  readonly system: readonly GeminiPiece[];
}

/**
 * Placeholder for a missing signature of a function call: Google's own value for calls of another
 * model. Gemini 3 refuses calls without a signature.
 */
const foreignSignature = "skip_thought_signature_validator";

/**
 * Encodes turns. Turns of the same role become one content, so that the results of parallel calls
 * are together, as Gemini requires. System messages at the beginning become the system instruction.
 * Later ones stay in place as user text: Gemini has no other form, and moving them to the front
 * would change the cached prefix.
 *
 * @throws GatewayError INVALID_REQUEST for content that Gemini cannot take
 */
export function encodeContents(given: readonly Turn[], context: EncodeContext): EncodedContents {
  const turns = portableTurns(given, {
    dialect: Dialect.GEMINI,
    drop: (name) => context.drop(name),
    // It takes texts of white space, but not empty ones.
    quirks: { blankText: "accepted" },
  });
  const system: GeminiPiece[] = [];
  const contents: GeminiContent[] = [];
  const writer = new TurnWriter(context);
  const list = new ContentList(contents);
  for (const turn of turns) {
    if (turn.name !== "") context.drop("turns.name");
    context.extras(turn.extras);
    if (turn.role === Role.ASSISTANT) {
      list.add("model", writer.parts(turn, list.partsOf("model")));
      continue;
    }
    list.add("model", writer.leftOver());
    if (turn.role !== Role.SYSTEM) list.add("user", writer.parts(turn, []));
    else if (contents.length === 0) append(system, writer.system(turn));
    else list.addLate(writer.system(turn));
  }
  list.add("model", writer.leftOver());
  list.end();
  if (context.traits.needsSignatures) contents.forEach(signFirstCall);
  if (contents.length > 0) return { contents, system };
  if (system.length === 0)
    throw invalid(undefined, "the messages are empty: send at least one with content");
  // Gemini requires something to answer; other styles accept a system message alone.
  return { contents: [{ role: "user", parts: system }], system: [] };
}

/** Contents whose roles alternate. */
class ContentList {
  readonly #contents: GeminiContent[];
  /**
   * The last parts of the last content, from a late system text on: results of tools still come
   * before them.
   */
  #late: GeminiPiece[] | undefined;

  constructor(contents: GeminiContent[]) {
    this.#contents = contents;
  }

  /** The parts of the last content, if it is of that role. */
  partsOf(role: GeminiContent["role"]): readonly GeminiPiece[] {
    const last = this.#contents.at(-1);
    return last?.role === role ? last.parts : [];
  }

  /** System text does not answer a call, so tool results that follow it are moved before it. */
  add(role: GeminiContent["role"], parts: readonly GeminiPiece[]): void {
    const last = this.#contents.at(-1);
    if (parts.length === 0) return;
    if (last?.role !== role) {
      this.end();
      this.#contents.push({ role, parts: [...parts] });
      return;
    }
    const isAnswer = parts.some((part) => partOf(part)?.functionResponse !== undefined);
    append(isAnswer ? last.parts : (this.#late ?? last.parts), parts);
  }

  addLate(parts: readonly GeminiPiece[]): void {
    if (parts.length === 0) return;
    if (this.#contents.at(-1)?.role !== "user") {
      this.end();
      this.#contents.push({ role: "user", parts: [] });
    }
    append((this.#late ??= []), parts);
  }

  /** No more results come for the last content. */
  end(): void {
    if (this.#late !== undefined) append(this.#contents.at(-1)?.parts ?? [], this.#late);
    this.#late = undefined;
  }
}

/** Only the first of parallel calls carries a signature. */
function signFirstCall({ parts }: GeminiContent): void {
  const first = parts.map(partOf).find((part) => part?.functionCall !== undefined);
  if (first !== undefined) first.thoughtSignature ??= foreignSignature;
}

/** Encodes turns in order, and keeps the names of calls. */
class TurnWriter {
  readonly #context: EncodeContext;
  readonly #names = new Map<string, string>();
  /** Signatures whose function calls are still to come, in order. */
  #waiting: string[] = [];

  constructor(context: EncodeContext) {
    this.#context = context;
  }

  system({ parts }: Turn): GeminiPiece[] {
    return parts.flatMap((part) => {
      if (part.kind.case !== "text")
        throw invalid(undefined, "a system message may only contain text");
      return this.#part(part);
    });
  }

  /** @param before earlier parts in the same content: some styles make each part a separate turn */
  parts(turn: Turn, before: readonly GeminiPiece[]): GeminiPiece[] {
    const parts: GeminiPiece[] = [];
    for (const part of turn.parts) {
      append(parts, this.#signed(part, parts.length === 0 ? before : parts));
    }
    return parts;
  }

  /**
   * Signatures whose calls did not follow. They are sent with an empty text, which Gemini accepts.
   */
  leftOver(): GeminiPiece[] {
    const parts = this.#waiting.map((thoughtSignature) => ({ text: "", thoughtSignature }));
    this.#waiting = [];
    return parts;
  }

  /** A part; the seal of a medium goes to the last one of `before`. */
  #signed(part: Part, before: readonly GeminiPiece[]): GeminiPiece[] {
    const { kind } = part;
    if (kind.case !== "reasoning") return this.#part(part);
    const { seal } = kind.value;
    if (seal !== undefined && seal.dialect !== Dialect.GEMINI) {
      this.#context.drop("turns.reasoning");
      return [];
    }
    return this.#reasoning(kind.value, seal, before.at(-1));
  }

  #reasoning(
    { text, summaries }: Reasoning,
    seal: ReasoningSeal | undefined,
    last: GeminiPiece | undefined,
  ): GeminiPiece[] {
    const said = text || summaries.join("\n\n");
    const thought: GeminiPiece[] = said === "" ? [] : [{ text: said, thought: true }];
    if (seal === undefined) return thought;
    const { signature: thoughtSignature, place } = openPlace(seal);
    if (place === "thought") return [{ text: said, thought: true, thoughtSignature }];
    if (place === "call") {
      this.#waiting.push(thoughtSignature);
      return thought;
    }
    const signed = last && partOf(last);
    if (signed?.inlineData === undefined || signed.thoughtSignature !== undefined) {
      return [...thought, { text: "", thoughtSignature }];
    }
    signed.thoughtSignature = thoughtSignature;
    return thought;
  }

  #part({ kind, cacheHint, extras }: Part): GeminiPiece[] {
    const context = this.#context;
    if (cacheHint !== undefined) context.drop("cache_hint");
    context.extras(extras);
    switch (kind.case) {
      case "text":
        if (kind.value.citations.length > 0) context.drop("citations");
        return textPart(kind.value.text);
      case "refusal":
        return textPart(kind.value.text);
      case "media":
        return [encodeMedia(kind.value, context)];
      case "toolCall":
        return [this.#toolCall(kind.value)];
      case "toolResult":
        return encodeToolResult(kind.value, { context, names: this.#names });
      case "opaque":
        return [opaquePart(kind.value)];
      case "reasoning":
      case undefined:
        break;
    }
    return [];
  }

  #toolCall({ id, name, type, input, namespace }: ToolCall): GeminiPart {
    const wireName = geminiToolName({ name, namespace });
    this.#names.set(id, wireName);
    const thoughtSignature = this.#waiting.shift();
    const args = argumentsOf(type, input);
    return {
      functionCall: { ...(id && { id }), name: wireName, args },
      ...(thoughtSignature !== undefined && { thoughtSignature }),
    };
  }
}

/** A part that was written here. */
function partOf(piece: GeminiPiece): GeminiPart | undefined {
  return piece instanceof JsonText ? undefined : piece;
}

/** Gemini refuses parts without content. */
function textPart(text: string): GeminiPiece[] {
  return text === "" ? [] : [{ text }];
}

/** Gemini requires an object. Other input (free text, broken JSON) is shown as it was. */
function argumentsOf(type: ToolType, input: string): JsonRecord | JsonText {
  if (type === ToolType.CUSTOM) return { input };
  if (input.trim() === "") return {};
  return parseRecord(input) === undefined ? { input } : new JsonText(input);
}

/** A part of Gemini's own, whole. */
function opaquePart({ dialect, type, json }: OpaquePart): JsonText {
  const isOwn = dialect === Dialect.GEMINI && parseRecord(json) !== undefined;
  if (isOwn) return new JsonText(json);
  throw invalid(undefined, `"${type}" is not supported by this model's vendor: leave it out`);
}

/** Context for writing a result. */
interface ToolResultContext {
  readonly context: EncodeContext;
  /** The names of the calls so far, by id. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * Writes a result: texts as its output, or its error; pictures within it if the model can read them
 * there, else behind it.
 *
 * @throws GatewayError INVALID_REQUEST if it belongs to no call
 */
function encodeToolResult(
  result: ToolResult,
  { context, names }: ToolResultContext,
): GeminiPiece[] {
  const { toolCallId: id, isError } = result;
  const name = names.get(id) ?? ownName(result);
  const texts: string[] = [];
  const within: GeminiBlob[] = [];
  const behind: GeminiPiece[] = [];
  for (const part of result.parts) {
    const written = resultPart(part, context);
    if (written.text !== undefined) texts.push(written.text);
    else if (written.inlineData !== undefined && context.traits.mediaResponses) {
      within.push(written.inlineData);
    } else behind.push(written);
  }
  const response = { [isError ? "error" : "output"]: texts.join("\n") };
  const parts = within.map((inlineData) => ({ inlineData }));
  const functionResponse = {
    ...(id && { id }),
    name,
    response,
    ...(parts.length > 0 && { parts }),
  };
  return [{ functionResponse }, ...behind];
}

/** Returns the name that the result itself contains. */
function ownName({ name, toolCallId }: ToolResult): string {
  if (name !== "") return geminiToolName({ name, namespace: "" });
  throw invalid(
    undefined,
    `the result for "${toolCallId}" has no earlier tool call: send the call before its result`,
  );
}

function resultPart({ kind, cacheHint, extras }: Part, context: EncodeContext): GeminiPart {
  if (cacheHint !== undefined) context.drop("cache_hint");
  context.extras(extras);
  if (kind.case === "text" || kind.case === "refusal") return { text: kind.value.text };
  if (kind.case === "media") return encodeMedia(kind.value, context);
  const what = kind.case === "opaque" ? kind.value.type : "(none)";
  throw invalid(
    undefined,
    `"${what}" in a tool's result is not supported by this model's vendor: leave it out`,
  );
}
