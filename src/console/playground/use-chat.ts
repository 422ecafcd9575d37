/** A conversation, and the call that goes on with it. */
import { useEffect, useRef, useState } from "react";
import { messageOf, noReply, type Reply, runChat, withChunk } from "./chat.ts";
import type { ChatRequest, Message } from "./conversation.ts";
import { usePlaygroundKey } from "./use-key.ts";

/** What was said, with what does not go back to the model. */
export interface Turn {
  readonly message: Message;
  /** What the model thought before. Empty: nothing that it tells. */
  readonly reasoning?: string;
}

/** The conversation. */
export interface Chat {
  readonly turns: readonly Turn[];
  /** What has come of the reply; `undefined`: none is under way. */
  readonly reply: Reply | undefined;
  /** How the last reply ended, in the style's word. Empty: there was none, or it did not end. */
  readonly finish: string;
  readonly error: unknown;
  /** Of the last call. Empty: there was none. */
  readonly requestId: string;
  /** The last request, as it was sent. */
  readonly sent: ChatRequest | undefined;
  /** Says more. */
  send(more: readonly Message[]): void;
  /** Asks for the last messages again. */
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

/** @param requestFor the request that messages make with the present settings */
export function useChat(requestFor: (messages: readonly Message[]) => ChatRequest): Chat {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [reply, setReply] = useState<Reply>();
  const [ended, setEnded] = useState(nothing);
  const stop = useRef<AbortController>(undefined);
  const keyOf = usePlaygroundKey();
  // Who leaves the page waits for no answer, and should not pay for one.
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
