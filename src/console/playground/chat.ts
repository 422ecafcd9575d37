/** A chat completion, streamed: the request that the page shows as curl, byte for byte. */
import { bodyOf, type ChatRequest } from "./conversation.ts";
import type { Chunk } from "./reply.ts";

/** Where chat completions are asked for. */
export const chatPath = "/v1/chat/completions";

/** A refusal of the gateway, in its own words. */
export class ChatError extends Error {}

/** How a run is told of what comes. */
export interface RunOptions {
  /** The secret of the key. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Called with the request id once there is an answer, be it a refusal: by it the call is found. */
  readonly onAnswer: (requestId: string) => void;
  /** Called with each chunk of the reply. */
  readonly onChunk: (chunk: Chunk) => void;
}

/**
 * Runs a completion.
 *
 * @throws ChatError where the gateway refuses, or ends the stream with an error
 */
export async function runChat(
  request: ChatRequest,
  { key, signal, onAnswer, onChunk }: RunOptions,
): Promise<void> {
  const response = await fetch(chatPath, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    // The cookie counts for nothing here, so it is not sent.
    credentials: "omit",
    body: bodyOf(request),
    signal,
  });
  onAnswer(response.headers.get("x-request-id") ?? "");
  if (!response.ok || response.body === null) throw new ChatError(wordsOf(await response.text()));
  for await (const data of eventsOf(response.body)) {
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error !== undefined) throw new ChatError(chunk.error.message ?? data);
    onChunk(chunk);
  }
}

function wordsOf(body: string): string {
  try {
    return (JSON.parse(body) as Chunk).error?.message ?? body;
  } catch {
    return body;
  }
}

/** The `data:` of each event, up to the end mark. */
async function* eventsOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const data = /^data: ?(.*?)\r?$/.exec(line)?.[1] ?? "";
      if (data === "[DONE]") return;
      if (data !== "") yield data;
    }
  }
}
