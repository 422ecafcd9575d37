/** Short ways to write what the tests encode. */
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type PartSchema,
  Role,
  ToolType,
  type TurnSchema,
} from "../../../../gen/uas/inference/v1/conversation_pb.ts";
import { GenerationSchema } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import type { EncodedRequest } from "../../../../src/dialect/codec.ts";
import { gemini } from "../../../../src/dialect/gemini/dialect.ts";
import { sealOf, type SealPlace } from "../../../../src/dialect/gemini/reasoning.ts";

/** Initial values of a message, which can be spread. */
type Init<Desc extends DescMessage> = Extract<MessageInitShape<Desc>, { $typeName?: never }>;

/** A part as it is made. */
export type PartInit = Init<typeof PartSchema>;
/** A turn as it is made. */
export type TurnInit = Init<typeof TurnSchema>;
/** A generation as it is made. */
export type GenerationInit = Init<typeof GenerationSchema>;

/** A text. */
export function text(value: string): PartInit {
  return { kind: { case: "text", value: { text: value } } };
}

/** A function call. */
export function call(name: string, input = "{}", id = `call_${name}`): PartInit {
  return { kind: { case: "toolCall", value: { id, name, input, type: ToolType.FUNCTION } } };
}

/** The answer to {@link call}. */
export function result(name: string, ...parts: PartInit[]): PartInit {
  return { kind: { case: "toolResult", value: { toolCallId: `call_${name}`, parts } } };
}

/** Reasoning that Gemini sealed. */
export function sealed(signature: string, place: SealPlace, said = ""): PartInit {
  const value = { text: said, seal: sealOf(signature, place) };
  return { kind: { case: "reasoning", value } };
}

/** Turns by role. */
export const system = (...parts: PartInit[]): TurnInit => ({ role: Role.SYSTEM, parts });
export const user = (...parts: PartInit[]): TurnInit => ({ role: Role.USER, parts });
export const assistant = (...parts: PartInit[]): TurnInit => ({ role: Role.ASSISTANT, parts });

/** A body that was parsed. */
export type Json = Readonly<Record<string, unknown>>;

/** Encodes for a model. */
export function encode(init: GenerationInit, model = "gemini-2.5-flash"): EncodedRequest {
  return gemini.encodeRequest(create(GenerationSchema, init), {
    model,
    stream: false,
    maxOutputTokens: 4096,
    sourceDialect: Dialect.CHAT_COMPLETIONS,
  });
}

/** The body for a conversation. */
export function bodyOf(turns: readonly TurnInit[], model?: string): Json {
  return parse(encode({ conversation: { turns: [...turns] } }, model));
}

/** The body of a request with one user's text, and whatever else is set. */
export function bodyWith(init: GenerationInit, model?: string): Json {
  return parse(encode({ conversation: { turns: [user(text("Hi"))] }, ...init }, model));
}

/** The parsed body. */
export function parse({ body }: EncodedRequest): Json {
  return JSON.parse(body.toString()) as Json;
}
