/** Records a reply while it is sent, and sends it again. */
import { isUtf8 } from "node:buffer";
import { keptReplyBytesMax } from "../../core/limits.ts";
import type { Sink, SinkHead } from "../../core/sink.ts";
import type { Chunk, Repetition } from "../pipeline/adapter.ts";

/** Passes a reply on and records it. */
export class ReplyRecorder<Out extends Chunk> implements Sink<Out> {
  readonly #sink: Sink<Out>;
  readonly #repetition: Repetition<Out>;
  #head: SinkHead | undefined;
  #isStream = false;
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(sink: Sink<Out>, repetition: Repetition<Out>) {
    this.#sink = sink;
    this.#repetition = repetition;
  }

  whole(head: SinkHead, body: Out): void {
    this.#begin(head);
    this.#add(body);
    this.#sink.whole(head, body);
  }

  head(head: SinkHead): void {
    this.#isStream = true;
    this.#begin(head);
    this.#sink.head(head);
  }

  chunk(out: Out): Promise<void> | undefined {
    this.#add(out);
    return this.#sink.chunk(out);
  }

  /** The recorded reply as text; undefined if there is none, or it is too long to be kept. */
  text(): string | undefined {
    if (this.#head === undefined || this.#bytes > keptReplyBytesMax) return undefined;
    const body = Buffer.concat(this.#pieces);
    const isText = isUtf8(body);
    const form: KeptForm = { head: this.#head, isStream: this.#isStream, isText };
    return `${JSON.stringify(form)}\n${body.toString(isText ? "utf8" : "base64")}`;
  }

  /** Copies the head: the edge adds headers of its own response to it. */
  #begin({ status, headers, dropped = [] }: SinkHead): void {
    const kept = Object.entries(headers).filter(([name]) => !name.startsWith("x-ratelimit-"));
    this.#head = { status, headers: Object.fromEntries(kept), dropped };
  }

  #add(out: Out): void {
    // A reply that is too long already is not recorded further.
    if (this.#bytes > keptReplyBytesMax) return;
    const piece = this.#repetition.toBytes(out);
    this.#bytes += piece.length;
    if (this.#bytes <= keptReplyBytesMax) this.#pieces.push(piece);
    else this.#pieces = [];
  }
}

/** The first line of a kept reply; its body follows. */
interface KeptForm {
  readonly head: SinkHead;
  readonly isStream: boolean;
  /** Whether the body is text, else base64. */
  readonly isText: boolean;
}

/** Sends a kept reply. @returns its head */
export function sendKept<Out extends Chunk>(
  text: string,
  sink: Sink<Out>,
  repetition: Repetition<Out>,
): SinkHead {
  const end = text.indexOf("\n");
  const { head, isStream, isText } = JSON.parse(text.slice(0, end)) as KeptForm;
  const out = repetition.fromBytes(Buffer.from(text.slice(end + 1), isText ? "utf8" : "base64"));
  const sent = { ...head, headers: { ...head.headers, "idempotent-replayed": "true" } };
  if (!isStream) sink.whole(sent, out);
  else {
    sink.head(sent);
    if (out.length > 0) void sink.chunk(out);
  }
  return head;
}
