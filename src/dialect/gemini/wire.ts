/** The JSON of generateContent requests, as far as it is written here. */
import type { Part, Reasoning } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { JsonText } from "../../wire/json/json-tree.ts";
import { type JsonRecord, recordsAt } from "../../wire/json/value.ts";

/** A request body. */
export interface GeminiRequest {
  readonly contents: readonly GeminiContent[];
  readonly systemInstruction?: { readonly parts: readonly GeminiPiece[] };
  readonly tools?: readonly (JsonRecord | JsonText)[];
  readonly toolConfig?: { readonly functionCallingConfig: FunctionCallingConfig | JsonText };
  readonly generationConfig?: GenerationConfig;
  readonly serviceTier?: string;
}

/** A whole turn of one side. */
export interface GeminiContent {
  readonly role: "user" | "model";
  readonly parts: GeminiPiece[];
}

/** A part, or one of Gemini's own, as its author wrote it. */
export type GeminiPiece = GeminiPart | JsonText;

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
  readonly args: JsonRecord | JsonText;
}

/** The function's result. */
interface FunctionResponse {
  readonly id?: string;
  readonly name: string;
  readonly response: JsonRecord;
  readonly parts?: ReadonlyArray<{ readonly inlineData: GeminiBlob }>;
}

/** Functions that may be called. */
export interface FunctionCallingConfig {
  readonly mode: "AUTO" | "NONE" | "ANY";
  /** With ANY only. */
  readonly allowedFunctionNames?: readonly string[];
}

/** Generation settings. */
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
  readonly responseJsonSchema?: JsonText;
  readonly thinkingConfig?: ThinkingConfig;
}

/** Thinking settings. Never both a budget and a level, which Gemini refuses. */
export interface ThinkingConfig {
  readonly includeThoughts?: boolean;
  readonly thinkingBudget?: number;
  readonly thinkingLevel?: "MINIMAL" | "LOW" | "MEDIUM" | "HIGH";
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

/** Returns the first candidate; empty if there is none, as in a chunk with usage only. */
export function candidateOf(chunk: JsonRecord): JsonRecord {
  return recordsAt(chunk, "candidates")[0] ?? {};
}
