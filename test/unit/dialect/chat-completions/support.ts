/** Support of the tests of the chat-completions codec. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import {
  type Generation,
  type GenerateEvent,
  GenerationSchema,
} from "../../../../gen/uas/inference/v1/generate_pb.ts";
import type { ReplyOptions } from "../../../../src/dialect/codec.ts";
import { chatCompletions } from "../../../../src/dialect/chat-completions/dialect.ts";
import { GatewayError } from "../../../../src/core/errors.ts";

export function decode(body: unknown, platformAliases = false): Generation {
  return chatCompletions.decodeRequest(Buffer.from(JSON.stringify(body)), { platformAliases });
}

export interface Encoded {
  // oxlint-disable-next-line typescript/no-explicit-any -- tests reach into it
  readonly body: any;
  readonly dropped: readonly string[];
}

export function encode(
  generation: Generation,
  sourceDialect: Dialect | undefined = Dialect.MESSAGES,
  stream = false,
): Encoded {
  const target = { model: "vendor-model", stream, maxOutputTokens: 4096, sourceDialect };
  const { body, dropped } = chatCompletions.encodeRequest(generation, target);
  return { body: JSON.parse(body.toString()), dropped };
}

export function replyOptions(options: Partial<ReplyOptions> = {}): ReplyOptions {
  return {
    model: "public",
    callId: "0123456789abcdef0123456789abcdef",
    created: 1_700_000_000,
    now: () => 1_700_000_009,
    inputTokens: 1,
    generation: create(GenerationSchema, { includeUsage: true }),
    onDropped: () => {},
    ...options,
  };
}

/** The events of a stream with the given data lines, in one piece, and after its end. */
export function decodeStream(chunks: readonly unknown[]): GenerateEvent[] {
  const decoder = chatCompletions.decodeStream();
  return [...decoder.push([Buffer.from(eventStream(chunks))]), ...decoder.end()];
}

export function eventStream(chunks: readonly unknown[]): string {
  return chunks
    .map((chunk) => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`)
    .join("");
}

/** A chunk with a delta. */
export function deltaChunk(delta: unknown, finish_reason: string | null = null) {
  const choices = [{ index: 0, delta, finish_reason }];
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 5, model: "v", choices };
}

export function usageChunk(prompt_tokens: number, completion_tokens: number) {
  return { id: "chatcmpl-1", choices: [], usage: { prompt_tokens, completion_tokens } };
}

export function refusal(run: () => unknown): { param: string | undefined; message: string } {
  try {
    run();
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) {
      return { param: error.param, message: error.message };
    }
    throw error;
  }
  throw new Error("was accepted");
}
