/** The destination of a call's reply: a socket, the iterator of an RPC, or a buffer. */
import { CancelSource, type CancelSignal } from "./cancel-signal.ts";

/** Status and headers of a reply; header names in lower case. */
export interface SinkHead {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Request members that the vendor's style could not express. None by default. */
  readonly dropped?: readonly string[];
}

/**
 * Receives a reply: either one {@link whole}, or a {@link head} and any number of chunks. The edge
 * that created the sink ends a streamed reply when the call ends.
 */
export interface Sink<Out> {
  /** A complete reply; nothing follows. */
  whole(head: SinkHead, body: Out): void;
  /** The head of a streamed reply. */
  head(head: SinkHead): void;
  /** A piece of a streamed reply. Resolves when more can be taken; `undefined` means at once. */
  chunk(out: Out): Promise<void> | undefined;
}

/** Converts a reply to messages of an RPC. */
export interface Messages<Out, Message> {
  /** The first message; undefined if there is none. */
  head(head: SinkHead): Message | undefined;
  /** The messages for one piece. */
  of(out: Out): readonly Message[];
}

/** A reply that has been sent. */
export interface SentReply {
  /** Resolves when the call is settled; never rejects. Undefined if there is nothing to settle. */
  readonly settled?: Promise<void>;
}

/**
 * A call that pushes its reply into a sink. Rejects if it failed; pieces that were pushed before
 * the failure were sent.
 */
export type SinkCall<Out> = (sink: Sink<Out>, signal: CancelSignal) => Promise<SentReply>;

/** Maximum time that a client waits for settlement. */
const settleWaitMs = 1_000;

/**
 * Resolves with `work`, but after {@link settleWaitMs} at the latest. The end of a reply waits for
 * settlement: so a complete reply is charged even if the process is killed, and the client finds
 * its call record at once. If neither the database nor the journal accepts the settlement, the
 * reply still ends. Never rejects.
 */
export function withinSettleWait(work: Promise<void> | undefined): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, settleWaitMs);
    const onEnd = (): void => {
      clearTimeout(timer);
      resolve();
    };
    if (work === undefined) onEnd();
    else work.then(onEnd, onEnd);
  });
}

/**
 * Converts a call to the messages of a server-streaming RPC. The call starts with the first read
 * and is cancelled when the reader returns early. At most one message is buffered.
 */
export function asMessages<Out, Message>(
  call: SinkCall<Out>,
  messages: Messages<Out, Message>,
  client: CancelSignal,
): AsyncIterableIterator<Message, undefined> {
  return new MessageIterator(call, messages, client);
}

type Result<Message> = IteratorResult<Message, undefined>;

class MessageIterator<Out, Message>
  implements AsyncIterableIterator<Message, undefined>, Sink<Out>
{
  readonly #call: SinkCall<Out>;
  readonly #messages: Messages<Out, Message>;
  readonly #client: CancelSignal;
  readonly #signal = new CancelSource();
  /** Whether the reader has returned, so that further messages are dropped. */
  #isGone = false;
  #queue: Message[] = [];
  /** The running call. Never rejects; its outcome is in `#end`. */
  #running: Promise<void> | undefined;
  #end: { readonly error: unknown } | "done" | undefined;
  /** Resumes the pending read. */
  #onMessage: (() => void) | undefined;
  /** Resumes the call once all pushed messages were read. */
  #onRead: (() => void) | undefined;

  constructor(call: SinkCall<Out>, messages: Messages<Out, Message>, client: CancelSignal) {
    this.#call = call;
    this.#messages = messages;
    this.#client = client;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Result<Message>> {
    this.#running ??= this.#run();
    for (;;) {
      const message = this.#queue.shift();
      if (message !== undefined) return { done: false, value: message };
      if (this.#end === "done") return { done: true, value: undefined };
      if (this.#end !== undefined) {
        const { error } = this.#end;
        this.#end = "done";
        throw error;
      }
      const waiting = new Promise<void>((resolve) => (this.#onMessage = resolve));
      this.#goOn();
      await waiting;
    }
  }

  /**
   * Cancels the call as if its client had disconnected, and waits for its end. A call that was
   * never read has not started.
   */
  async return(): Promise<Result<Message>> {
    this.#isGone = true;
    this.#queue = [];
    if (this.#end === undefined) {
      this.#signal.cancel(this.#client.reason);
      this.#goOn();
      await this.#running;
      this.#end = "done";
    }
    return { done: true, value: undefined };
  }

  whole(head: SinkHead, body: Out): void {
    this.head(head);
    this.#push(this.#messages.of(body));
  }

  head(head: SinkHead): void {
    const message = this.#messages.head(head);
    if (message !== undefined) this.#push([message]);
  }

  chunk(out: Out): Promise<void> | undefined {
    this.#push(this.#messages.of(out));
    if (this.#queue.length === 0 || this.#signal.aborted) return undefined;
    return new Promise((resolve) => (this.#onRead = resolve));
  }

  #push(messages: readonly Message[]): void {
    if (this.#isGone) return;
    this.#queue.push(...messages);
    const wake = this.#onMessage;
    this.#onMessage = undefined;
    wake?.();
  }

  #goOn(): void {
    const goOn = this.#onRead;
    this.#onRead = undefined;
    goOn?.();
  }

  async #run(): Promise<void> {
    const onCancel = (): void => {
      this.#signal.cancel(this.#client.reason);
      this.#goOn();
    };
    if (this.#client.aborted) onCancel();
    else this.#client.addEventListener("abort", onCancel);
    try {
      const { settled } = await this.#call(this, this.#signal);
      if (settled !== undefined) await withinSettleWait(settled);
      this.#end = "done";
    } catch (error) {
      this.#end = { error };
    } finally {
      this.#client.removeEventListener("abort", onCancel);
      this.#onMessage?.();
    }
  }
}
