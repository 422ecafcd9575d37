/** A conversation, and the call that continues it. */
import { useEffect, useRef, useState } from "react";
import { apiOrigin } from "../common/api.ts";
import { messageOf, noReply, type Reply, runChat, withChunk } from "./chat.ts";
import type { ChatRequest, Message } from "./conversation.ts";
import { usePlaygroundKey } from "./use-key.ts";

/** A message, with data that is not sent back to the model. */
export interface Turn {
  readonly message: Message;
  /** The reasoning before the message; empty if there is none. */
  readonly reasoning?: string;
}

/** The state of a conversation, and its actions. */
export interface Chat {
  readonly turns: readonly Turn[];
  /** The reply so far; undefined if none is streaming. */
  readonly reply: Reply | undefined;
  /** The finish reason of the last reply; empty if there is none, or it did not finish. */
  readonly finish: string;
  readonly error: unknown;
  /** The request id of the last call. Empty: there was none. */
  readonly requestId: string;
  /** The last request, as it was sent. */
  readonly sent: ChatRequest | undefined;
  /** Sends more messages. */
  send(more: readonly Message[]): void;
  /** Sends the last messages again. */
  retry(): void;
  stop(): void;
  clear(): void;
}

interface Ended {
  readonly finish: string;
  readonly error: unknown;
  readonly requestId: string;
  readonly sent: ChatRequest | undefined;
}

const nothing: Ended = { finish: "", error: null, requestId: "", sent: undefined };

/**
 * Holds a conversation.
 *
 * @param requestFor the request for messages with the current settings
 */
export function useChat(requestFor: (messages: readonly Message[]) => ChatRequest): Chat {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [reply, setReply] = useState<Reply>();
  const [ended, setEnded] = useState(nothing);
  const stop = useRef<AbortController>(undefined);
  const keyOf = usePlaygroundKey();
  // A user who leaves the page should not pay for the rest of an unread reply.
  useEffect(() => () => stop.current?.abort(), []);

  const run = async (asked: readonly Turn[]): Promise<void> => {
    const abort = new AbortController();
    stop.current = abort;
    const sent = requestFor(asked.map(({ message }) => message));
    let [requestId, got, error]: [string, Reply, unknown] = ["", noReply, null];
    setTurns(asked);
    setReply(got);
    setEnded({ ...ended, sent, error: null, finish: "" });
    try {
      await runChat(sent, {
        origin: apiOrigin(),
        key: await keyOf(),
        signal: abort.signal,
        onAnswer: (id) => void (requestId = id),
        onChunk: (chunk) => setReply((got = withChunk(got, chunk))),
      });
    } catch (failure) {
      if (!abort.signal.aborted) error = failure;
    }
    const isWhole = error === null && !abort.signal.aborted;
    const message = messageOf(got, isWhole);
    if (message !== undefined) setTurns([...asked, { message, reasoning: got.reasoning }]);
    setEnded({ sent, requestId, error, finish: isWhole ? got.finish || "stop" : "" });
    setReply(undefined);
  };
  return {
    turns,
    reply,
    ...ended,
    send: (more) => void run([...turns, ...more.map((message) => ({ message }))]),
    retry: () => void run(turns),
    stop: () => stop.current?.abort(),
    clear() {
      setTurns([]);
      setEnded({ ...nothing, requestId: ended.requestId });
    },
  };
}
