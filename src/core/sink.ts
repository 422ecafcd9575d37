/** Where a call's reply goes: a socket, the iterator of an RPC, or whoever collects it. */
import { CancelSource, type CancelSignal } from "./cancel-signal.ts";

/** Status and headers of a reply, by lower-case name. */
export interface SinkHead {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Members of the request that the vendor's style could not carry. Default: none. */
  readonly dropped?: readonly string[];
}

/**
 * Takes a reply as it comes: either {@link whole}, or {@link head} and any number of chunks. The end of a streamed
 * reply is the end of the call: the edge that made the sink writes it then.
 */
export interface Sink<Out> {
  /** A reply that is complete: nothing follows. */
  whole(head: SinkHead, body: Out): void;
  /** The head of a streamed reply. */
  head(head: SinkHead): void;
  /** A piece of it. Resolves when more can be taken; `undefined`: at once. */
  chunk(out: Out): Promise<void> | undefined;
}

/** How a reply becomes messages of an RPC. */
export interface Messages<Out, Message> {
  /** The message that comes first; `undefined`: none. */
  head(head: SinkHead): Message | undefined;
  /** The messages for what comes at once. */
  of(out: Out): readonly Message[];
}

/** A reply that is out. */
export interface Pushed {
  /** Resolves when its call is settled; never rejects. Absent: there is nothing to settle. */
  readonly settled?: Promise<void>;
}

/** Runs a call that pushes its reply into a sink. Rejects where it failed: what was pushed before counts. */
export type PushedCall<Out> = (sink: Sink<Out>, signal: CancelSignal) => Promise<Pushed>;

/** How long a client waits for its settlement, in milliseconds. */
const settleWaitMs = 1_000;

/**
 * Resolves with `work`, at the latest after {@link settleWaitMs}: a client waits for its settlement a moment, so that it
 * can find its call at once; not longer, since the reply is out. Never rejects.
 */
export function soon(work: Promise<void> | undefined): Promise<void> {
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
 * The reply of a call as the messages of a server-streaming RPC. The call begins with the first read, and is cancelled
 * when its reader returns early. One message is made ahead of its reader at most.
 */
export function asMessages<Out, Message>(
  call: PushedCall<Out>,
  messages: Messages<Out, Message>,
  client: CancelSignal,
): AsyncIterableIterator<Message, undefined> {
  return new MessageIterator(call, messages, client);
}

type Result<Message> = IteratorResult<Message, undefined>;

class MessageIterator<Out, Message>
  implements AsyncIterableIterator<Message, undefined>, Sink<Out>
{
  readonly #call: PushedCall<Out>;
  readonly #messages: Messages<Out, Message>;
  readonly #client: CancelSignal;
  readonly #signal = new CancelSource();
  /** Whether the reader has returned: nobody reads what is still pushed. */
  #isGone = false;
  #queue: Message[] = [];
  /** The call, once it has begun. Never rejects: how it ended is in `#end`. */
  #running: Promise<void> | undefined;
  #end: { readonly error: unknown } | "done" | undefined;
  /** Wakes the read that waits. */
  #onMessage: (() => void) | undefined;
  /** Lets the call go on: all that it pushed was read. */
  #onRead: (() => void) | undefined;

  constructor(call: PushedCall<Out>, messages: Messages<Out, Message>, client: CancelSignal) {
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

  /** Ends the call as one whose client has disconnected, and waits for it. One that was never read has not begun. */
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
      if (settled !== undefined) await soon(settled);
      this.#end = "done";
    } catch (error) {
      this.#end = { error };
    } finally {
      this.#client.removeEventListener("abort", onCancel);
      this.#onMessage?.();
    }
  }
}
