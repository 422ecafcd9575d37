/** A streamed reply, put together piece by piece. */
import type { AssistantMessage, ToolCall } from "./conversation.ts";

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

/** What has come so far. */
export interface Reply {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** Why it ended, in the style's word. Empty: it goes on. */
  readonly finish: string;
}

/** Nothing yet. */
export const noReply: Reply = { text: "", reasoning: "", calls: [], finish: "" };

/** The reply with another chunk. */
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

/** Pieces belong together by their index; where a vendor numbers them all the same, a new id begins a new call. */
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
 * The message that a reply becomes; `undefined`: nothing was said.
 *
 * @param isWhole whether it came to its end: calls of tools that were cut off are not kept
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
