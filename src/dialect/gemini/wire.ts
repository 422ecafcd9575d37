/** The JSON of generateContent requests, as far as it is written here. */
import type { Part, Reasoning } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, PartDelta } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { JsonRecord } from "../json/value.ts";

/** A request body. */
export interface GeminiRequest {
  readonly contents: readonly GeminiContent[];
  readonly systemInstruction?: { readonly parts: readonly GeminiPart[] };
  readonly tools?: readonly JsonRecord[];
  readonly toolConfig?: { readonly functionCallingConfig: FunctionCallingConfig };
  readonly generationConfig?: GenerationConfig;
  readonly serviceTier?: string;
}

/** What one side said, whole. */
export interface GeminiContent {
  readonly role: "user" | "model";
  readonly parts: GeminiPart[];
}

/** One part: its content, and the signature that came with it. */
export interface GeminiPart {
  text?: string;
  thought?: true;
  inlineData?: GeminiBlob;
  fileData?: { readonly fileUri: string; readonly mimeType?: string };
  functionCall?: FunctionCall;
  functionResponse?: FunctionResponse;
  thoughtSignature?: string;
}

/** Bytes in base64. */
export interface GeminiBlob {
  readonly mimeType: string;
  readonly data: string;
}

/** The model calls a function. */
interface FunctionCall {
  readonly id?: string;
  readonly name: string;
  readonly args: JsonRecord;
}

/** What the function answered. */
interface FunctionResponse {
  readonly id?: string;
  readonly name: string;
  readonly response: JsonRecord;
  readonly parts?: ReadonlyArray<{ readonly inlineData: GeminiBlob }>;
}

/** Which functions may be called. */
export interface FunctionCallingConfig {
  readonly mode: "AUTO" | "NONE" | "ANY";
  /** With ANY only. */
  readonly allowedFunctionNames?: readonly string[];
}

/** How to generate. */
export interface GenerationConfig {
  readonly candidateCount?: number;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly stopSequences?: readonly string[];
  readonly seed?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly responseMimeType?: string;
  readonly responseJsonSchema?: JsonRecord;
  readonly thinkingConfig?: ThinkingConfig;
}

/** How much to think. Never both a budget and a level: Gemini refuses that. */
export interface ThinkingConfig {
  readonly includeThoughts?: boolean;
  readonly thinkingBudget?: number;
  readonly thinkingLevel?: "MINIMAL" | "LOW" | "MEDIUM" | "HIGH";
}

/* Events, made by hand: `create` costs more than all the rest of a chunk. */

type Kind = GenerateEvent["kind"];

/** Wraps what happened. */
export function event(kind: Kind): GenerateEvent {
  return { $typeName: "uas.inference.v1.GenerateEvent", kind };
}

/** A part begins. */
export function partStart(index: number, kind: Part["kind"]): GenerateEvent {
  const part: Part = { $typeName: "uas.inference.v1.Part", kind, extras: [] };
  return event({
    case: "partStart",
    value: { $typeName: "uas.inference.v1.PartStart", index, part },
  });
}

/** A part goes on. */
export function partDelta(index: number, delta: PartDelta["delta"]): GenerateEvent {
  return event({
    case: "partDelta",
    value: { $typeName: "uas.inference.v1.PartDelta", index, delta },
  });
}

/** A part is complete. */
export function partEnd(index: number): GenerateEvent {
  return event({ case: "partEnd", value: { $typeName: "uas.inference.v1.PartEnd", index } });
}

/** An empty text, to be filled. */
export function emptyText(): Part["kind"] {
  return {
    case: "text",
    value: { $typeName: "uas.inference.v1.TextPart", text: "", citations: [] },
  };
}

/** An empty reasoning, to be filled. */
export function emptyReasoning(): Part["kind"] {
  const value: Reasoning = {
    $typeName: "uas.inference.v1.Reasoning",
    text: "",
    summaries: [],
    itemId: "",
  };
  return { case: "reasoning", value };
}
