/** Turns, as contents: roles user and model that alternate, system messages apart. */
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
import { invalid } from "../../core/validation.ts";
import type { EncodeContext } from "./encode-context.ts";
import { geminiToolName } from "./encode-tools.ts";
import { encodeMedia } from "./media.ts";
import { openPlace } from "./reasoning.ts";
import type { GeminiBlob, GeminiContent, GeminiPart } from "./wire.ts";
import { type JsonRecord, parseRecord } from "../json/value.ts";

/** A conversation as Gemini has it. */
interface EncodedContents {
  readonly contents: readonly GeminiContent[];
  /** What the system messages say; empty: there are none. */
  readonly system: readonly GeminiPart[];
}

/**
 * What stands where a function call's signature is missing: Google's own word for a call that another model
 * made. Gemini 3 refuses a call without any.
 */
const foreignSignature = "skip_thought_signature_validator";

/**
 * Writes the turns. Turns of the same role become one content, so that the answers to parallel calls stand
 * together, as Gemini wants. System messages of the beginning go in front of all. Later ones stay in their
 * place, as the user's words: Gemini has no other, and in front they would change what its cache begins with.
 *
 * @throws GatewayError INVALID_REQUEST where something cannot be said to Gemini
 */
export function encodeContents(turns: readonly Turn[], context: EncodeContext): EncodedContents {
  const system: GeminiPart[] = [];
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
    else if (contents.length === 0) system.push(...writer.system(turn));
    else list.addLate(writer.system(turn));
  }
  list.add("model", writer.leftOver());
  if (context.traits.needsSignatures) contents.forEach(signFirstCall);
  if (contents.length > 0) return { contents, system };
  if (system.length === 0)
    throw invalid(undefined, "the messages are empty: send at least one with content");
  // Gemini wants something to answer; a system message on its own is that elsewhere.
  return { contents: [{ role: "user", parts: system }], system: [] };
}

/** Contents whose roles alternate. */
class ContentList {
  readonly #contents: GeminiContent[];
  /** Where late words of the system begin in the last content; `undefined`: it has none. */
  #late: number | undefined;

  constructor(contents: GeminiContent[]) {
    this.#contents = contents;
  }

  /** The parts of the last content, where it is of that role. */
  partsOf(role: GeminiContent["role"]): readonly GeminiPart[] {
    const last = this.#contents.at(-1);
    return last?.role === role ? last.parts : [];
  }

  /** Words of the system are no answer to a call: answers that come behind them go before. */
  add(role: GeminiContent["role"], parts: readonly GeminiPart[]): void {
    const last = this.#contents.at(-1);
    if (parts.length === 0) return;
    if (last?.role !== role) {
      this.#late = undefined;
      this.#contents.push({ role, parts: [...parts] });
      return;
    }
    const isAnswer = parts.some(({ functionResponse }) => functionResponse !== undefined);
    if (!isAnswer || this.#late === undefined) {
      last.parts.push(...parts);
      return;
    }
    last.parts.splice(this.#late, 0, ...parts);
    this.#late += parts.length;
  }

  addLate(parts: readonly GeminiPart[]): void {
    const last = this.#contents.at(-1);
    const isUser = last?.role === "user";
    const from = isUser ? (this.#late ?? last.parts.length) : 0;
    this.add("user", parts);
    if (parts.length > 0) this.#late = from;
  }
}

/** Only the first of parallel calls carries a signature. */
function signFirstCall({ parts }: GeminiContent): void {
  const first = parts.find((part) => part.functionCall !== undefined);
  if (first !== undefined) first.thoughtSignature ??= foreignSignature;
}

/** Writes one turn after the other, and knows what the calls so far were called. */
class TurnWriter {
  readonly #context: EncodeContext;
  readonly #names = new Map<string, string>();
  /** Signatures whose function calls are still to come, in order. */
  #waiting: string[] = [];

  constructor(context: EncodeContext) {
    this.#context = context;
  }

  system({ parts }: Turn): GeminiPart[] {
    return parts.flatMap((part) => {
      if (part.kind.case !== "text")
        throw invalid(undefined, "a system message may only hold text");
      return this.#part(part);
    });
  }

  /** @param before what stands before it in the same content: some styles make each part a turn of its own */
  parts(turn: Turn, before: readonly GeminiPart[]): GeminiPart[] {
    const parts: GeminiPart[] = [];
    for (const part of turn.parts) {
      parts.push(...this.#signed(part, parts.length === 0 ? before : parts));
    }
    return parts;
  }

  /** Signatures whose calls did not come: they are still the model's, and it takes them with an empty text. */
  leftOver(): GeminiPart[] {
    const parts = this.#waiting.map((thoughtSignature) => ({ text: "", thoughtSignature }));
    this.#waiting = [];
    return parts;
  }

  /** A part; the seal of a medium goes to the last one of `before`. */
  #signed(part: Part, before: readonly GeminiPart[]): GeminiPart[] {
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
    last: GeminiPart | undefined,
  ): GeminiPart[] {
    const said = text || summaries.join("\n\n");
    const thought: GeminiPart[] = said === "" ? [] : [{ text: said, thought: true }];
    if (seal === undefined) return thought;
    const { signature: thoughtSignature, place } = openPlace(seal);
    if (place === "thought") return [{ text: said, thought: true, thoughtSignature }];
    if (place === "call") {
      this.#waiting.push(thoughtSignature);
      return thought;
    }
    if (last?.inlineData === undefined || last.thoughtSignature !== undefined) {
      return [...thought, { text: "", thoughtSignature }];
    }
    last.thoughtSignature = thoughtSignature;
    return thought;
  }

  #part({ kind, cacheHint, extras }: Part): GeminiPart[] {
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

/** Gemini refuses parts without content. */
function textPart(text: string): GeminiPart[] {
  return text === "" ? [] : [{ text }];
}

/** Gemini wants an object. What is none (free text, JSON that the model broke) is shown as it was. */
function argumentsOf(type: ToolType, input: string): JsonRecord {
  if (type === ToolType.CUSTOM) return { input };
  return input.trim() === "" ? {} : (parseRecord(input) ?? { input });
}

/** A part of Gemini's own, whole. */
function opaquePart({ dialect, type, json }: OpaquePart): GeminiPart {
  const part = dialect === Dialect.GEMINI ? parseRecord(json) : undefined;
  if (part !== undefined) return part;
  throw invalid(undefined, `"${type}" means nothing to this model's vendor: leave it out`);
}

/** What writing a result needs beside it. */
interface ToolResultContext {
  readonly context: EncodeContext;
  /** The names of the calls so far, by id. */
  readonly names: ReadonlyMap<string, string>;
}

/**
 * Writes a result: texts as its output, or its error; pictures within it where the model can read them
 * there, else behind it.
 *
 * @throws GatewayError INVALID_REQUEST where it belongs to no call
 */
function encodeToolResult(result: ToolResult, { context, names }: ToolResultContext): GeminiPart[] {
  const { toolCallId: id, isError } = result;
  const name = names.get(id) ?? ownName(result);
  const texts: string[] = [];
  const within: GeminiBlob[] = [];
  const behind: GeminiPart[] = [];
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

/** The name that the result itself tells. */
function ownName({ name, toolCallId }: ToolResult): string {
  if (name !== "") return geminiToolName({ name, namespace: "" });
  throw invalid(undefined, `the result for "${toolCallId}" belongs to no call of a tool before it`);
}

function resultPart({ kind, cacheHint, extras }: Part, context: EncodeContext): GeminiPart {
  if (cacheHint !== undefined) context.drop("cache_hint");
  context.extras(extras);
  if (kind.case === "text" || kind.case === "refusal") return { text: kind.value.text };
  if (kind.case === "media") return encodeMedia(kind.value, context);
  const what = kind.case === "opaque" ? kind.value.type : "(none)";
  throw invalid(
    undefined,
    `"${what}" in a tool's result means nothing to this model's vendor: leave it out`,
  );
}
