/** Checks the holds of running streams: one timer for all of them. */
import { streamLookMs } from "../../config/limits.ts";

/** A stream that runs. */
export interface MonitoredStream {
  /** Does what is due. @param nowMs on the clock of `performance.now()` */
  look(nowMs: number): void;
}

/** The running streams of a process. Its timer runs only while there are any. */
export class MonitoredStreams {
  readonly #streams = new Set<MonitoredStream>();
  #timer: NodeJS.Timeout | undefined;

  /** A stream begins. */
  add(stream: MonitoredStream): void {
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.look(performance.now()), streamLookMs).unref();
  }

  /** A stream has ended, or never began. */
  delete(stream: MonitoredStream): void {
    if (!this.#streams.delete(stream) || this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks through all of them now. */
  look(nowMs: number): void {
    for (const stream of this.#streams) stream.look(nowMs);
  }
}
