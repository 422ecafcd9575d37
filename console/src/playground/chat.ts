/**
 * A streamed chat completion: sent byte for byte as the page shows it, written as code, and put
 * together piece by piece.
 */
import { type AssistantMessage, bodyOf, type ChatRequest, type ToolCall } from "./conversation.ts";

/** The path of chat completions. */
export const chatPath = "/v1/chat/completions";

/** An error of the gateway, with its message. */
class ChatError extends Error {}

/** Options of a run. */
interface RunOptions {
  /** The origin of the API. */
  readonly origin: string;
  /** The secret of the key. */
  readonly key: string;
  readonly signal: AbortSignal;
  /**
   * Called with the request id when the reply starts, even if it is an error: the call is found by
   * it.
   */
  readonly onAnswer: (requestId: string) => void;
  /** Called with each chunk of the reply. */
  readonly onChunk: (chunk: Chunk) => void;
}

/**
 * Runs a completion.
 *
 * @throws ChatError if the gateway refuses, or ends the stream with an error
 */
export async function runChat(
  request: ChatRequest,
  { origin, key, signal, onAnswer, onChunk }: RunOptions,
): Promise<void> {
  const response = await fetch(`${origin}${chatPath}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    // This path ignores the session cookie, so it is not sent.
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

/** A piece of a tool call. What a vendor adds to it is kept. */
interface CallPiece {
  readonly index?: number;
  readonly id?: string | null;
  readonly function?: { readonly name?: string | null; readonly arguments?: string | null };
}

interface Delta {
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
  readonly tool_calls?: readonly CallPiece[] | null;
}

/** A chunk of the stream. */
export interface Chunk {
  readonly choices?: readonly {
    readonly delta?: Delta | null;
    readonly finish_reason?: string | null;
  }[];
  readonly error?: { readonly message?: string };
}

/** The reply so far. */
export interface Reply {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** The finish reason; empty if it is not finished. */
  readonly finish: string;
}

/** The reply before the first chunk. */
export const noReply: Reply = { text: "", reasoning: "", calls: [], finish: "" };

/** The reply after another chunk. */
export function withChunk(reply: Reply, { choices }: Chunk): Reply {
  const { delta, finish_reason: finish } = choices?.[0] ?? {};
  const reasoning = delta?.reasoning_content ?? delta?.reasoning ?? "";
  return {
    text: reply.text + (delta?.content ?? "") + (delta?.refusal ?? ""),
    reasoning: reply.reasoning + reasoning,
    calls: (delta?.tool_calls ?? []).reduce(withPiece, reply.calls),
    finish: finish ?? reply.finish,
  };
}

/**
 * Pieces belong together by their index; if a vendor gives all the same index, a new id starts a
 * new call.
 */
function withPiece(calls: readonly ToolCall[], piece: CallPiece): readonly ToolCall[] {
  const { index = Math.max(calls.length - 1, 0), id, function: said, ...more } = piece;
  const known = calls[index];
  const isNew = known === undefined || (!!id && known.id !== "" && id !== known.id);
  if (!isNew) {
    const { name, arguments: before } = known.function;
    const grown = { name: name || (said?.name ?? ""), arguments: before + (said?.arguments ?? "") };
    return calls.with(index, {
      ...known,
      ...more,
      id: known.id || (id ?? ""),
      function: grown,
    });
  }
  const begun = { name: said?.name ?? "", arguments: said?.arguments ?? "" };
  return [...calls, { ...more, id: id ?? "", type: "function", function: begun }];
}

/**
 * The message of a reply; undefined if it is empty.
 *
 * @param isWhole whether it is complete: incomplete tool calls are dropped
 */
export function messageOf(reply: Reply, isWhole: boolean): AssistantMessage | undefined {
  const { text, reasoning, calls } = reply;
  if (!isWhole || calls.length === 0) {
    return text === "" ? undefined : { role: "assistant", content: text };
  }
  return {
    role: "assistant",
    content: text === "" ? null : text,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    tool_calls: calls,
  };
}
