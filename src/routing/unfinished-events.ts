/**
 * Bounds what all streams of a process keep of events that are not complete, from their first byte to their last, whoever
 * reads them: a call, a task, or a call whose client has not got a byte yet.
 */
import { streamCheckMs, unfinishedEventBytesMax } from "../core/limits.ts";
import { type Placed, ShortLivedSet } from "../core/short-lived.ts";

/** A stream that is being read. */
export interface EventReader extends Placed {
  /** Bytes of its event that is not complete. */
  readonly unfinishedBytes: number;
  /** Ends the stream, because the process cannot keep its unfinished event any longer. */
  giveUpEvent(): void;
}

/** The streams of a process. One timer serves them, and runs only while there are any. */
export class UnfinishedEvents {
  readonly #readers = new ShortLivedSet<EventReader>();
  #timer: NodeJS.Timeout | undefined;

  /** Adds a stream that begins. */
  add(reader: EventReader): void {
    this.#readers.add(reader);
    this.#timer ??= setInterval(() => this.check(), streamCheckMs).unref();
  }

  /** Removes a stream that has ended. */
  delete(reader: EventReader): void {
    if (!this.#readers.delete(reader) || this.#readers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Ends the streams with the longest unfinished events, until the rest fits. */
  check(): void {
    const readers = this.#readers.list();
    let left = 0;
    for (const { unfinishedBytes } of readers) left += unfinishedBytes;
    if (left <= unfinishedEventBytesMax) return;
    for (const reader of readers.toSorted(
      (one, two) => two.unfinishedBytes - one.unfinishedBytes,
    )) {
      if (left <= unfinishedEventBytesMax) return;
      left -= reader.unfinishedBytes;
      reader.giveUpEvent();
    }
  }
}
