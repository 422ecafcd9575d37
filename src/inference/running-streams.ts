/** Looks through the running streams: one timer for all of them. */
import { streamLookMs } from "../config/limits.ts";

/** A stream that runs. */
export interface RunningStream {
  /** Does what is due. @param nowMs on the clock of `performance.now()` */
  look(nowMs: number): void;
}

/** The running streams of a process. Its timer runs only while there are any. */
export class RunningStreams {
  readonly #streams = new Set<RunningStream>();
  #timer: NodeJS.Timeout | undefined;

  /** A stream begins. */
  add(stream: RunningStream): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.look(performance.now()), streamLookMs).unref();
  }

  /** A stream has ended, or never began. */
  delete(stream: RunningStream): void {
    if (!this.#streams.delete(stream) || this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks through all of them now. */
  look(nowMs: number): void {
    for (const stream of this.#streams) stream.look(nowMs);
  }
}
